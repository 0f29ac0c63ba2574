"""The nouns everything else speaks of: batches, runs, records, settings, errors, limits. Imports nothing."""
