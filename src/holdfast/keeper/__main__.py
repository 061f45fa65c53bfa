"""Entry of the zygote: `python -I -S …/keeper/__main__.py ROLES_FOLDER`, its host's socket on descriptor 0."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from holdfast.keeper.start.zygote import main

if __name__ == "__main__":
    main()
