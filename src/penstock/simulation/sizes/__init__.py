"""Sizes of the product that are made small for a run, so that several of everything occur."""
