"""The command line: one file a command or group of commands. It asks the server and shows; it decides nothing."""
