"""The command with trials that are toy children: `python -m tests.support.toy_sweep sweep FILE ...`."""

import functools

from neuroevo.cli import main
from neuroevo.sweeps import driver
from tests.support.sweeps import TOY_CHILD

if __name__ == "__main__":
    driver.run_sweep = functools.partial(driver.run_sweep, program=TOY_CHILD)
    main()
