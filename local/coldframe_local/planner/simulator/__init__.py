"""Simulator: Lambda's rules in virtual time, compiled by numba where it is installed."""
