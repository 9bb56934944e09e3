"""``python -m sdulearn`` is the command ``sdulearn``."""

import sys

from sdulearn.cli.main import main

sys.exit(main())
