#!/usr/bin/env python3
"""Makes examples/page.png: the page of manual_backward at the backward step through K = X Wk.

    picture.py BUILT_MANUAL_BACKWARD [FILE.png]
"""

import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from page_test import PageTest, start_browser

WIDTH = 1180


def main(program, picture=pathlib.Path(__file__).parents[2] / "examples" / "page.png"):
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        subprocess.run([program, "--page", page], check=True, stdout=subprocess.DEVNULL)
        PageTest.browser = start_browser(pathlib.Path(folder) / "profile")
        try:
            test = PageTest()
            test.open(page, width=WIDTH)
            test.run_js("document.documentElement.style.overflow = 'hidden'")  # no scroll bar
            test.run_js("go({ moment: currentStep().nodes.find((node) => node.name === 'K').backwardMoment.number })")
            test.screen(WIDTH, test.run_js("return document.querySelector('.legend').getBoundingClientRect().top | 0"))
            time.sleep(1)  # until animations end
            PageTest.browser.save_screenshot(str(picture))
        finally:
            PageTest.browser.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
