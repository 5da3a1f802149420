"""`python -m ascendsched`: the command line."""

from ascendsched.cli import main

if __name__ == "__main__":
    main(prog_name="python -m ascendsched")
