"""The types that all packages use: batches, runs, records, settings, errors, limits. Imports nothing."""
