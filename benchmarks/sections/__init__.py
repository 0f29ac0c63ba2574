"""The sections of a run, one file each: `measure(stage)` yields figures as it goes on."""
