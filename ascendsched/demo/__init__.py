"""The demo: small models written on the spot, and the runs that show where the time goes."""
