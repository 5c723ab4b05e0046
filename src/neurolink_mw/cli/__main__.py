"""`python -m neurolink_mw.cli`."""

from . import main

if __name__ == "__main__":
    main()
