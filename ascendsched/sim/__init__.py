"""Devices and clusters that are not here: plans replayed on a virtual clock, charged from cost profiles.

`docs/decisions/0014-simulation-over-plans.md` says why it is made so.
"""
