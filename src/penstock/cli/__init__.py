"""The command line: one file for each command or group of commands. It asks the server and prints; it decides nothing."""
