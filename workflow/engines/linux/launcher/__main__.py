"""Start of the program; all else is in modules, which are compiled once."""

import sys

from command import main

sys.exit(main(sys.argv[1:]))
