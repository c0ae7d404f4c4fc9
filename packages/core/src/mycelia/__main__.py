"""`python -m mycelia`: the `mycelia` command."""

from mycelia.cli import main

if __name__ == "__main__":
    main()
