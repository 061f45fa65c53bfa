"""Entry of the kernel runner: `python -I …/jupyter/__main__.py SPEC`, a session's main program on its terminal."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from holdfast.jupyter.runner import main

if __name__ == "__main__":
    main()
