"""``python -m clinsafe``."""

from clinsafe.cli.app import main

if __name__ == "__main__":
    main()
