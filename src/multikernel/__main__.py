"""``python -m multikernel`` is the command ``multikernel``."""

from .cli import main

if __name__ == "__main__":
    main()
