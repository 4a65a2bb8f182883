#!/usr/bin/env python3
"""Tests the page in headless Chromium, with the actions of a user.

    page_test.py                  makes the samples of sample.py and tests all features of the page with them
    page_test.py FILE.html...     tests the common properties of all pages with these, such as the library's own
        --examples FOLDER         and with pages written by the built examples in that folder, and their content
        --limits                  also fails if a page opens or steps too slowly; times are always printed
        --pictures FOLDER         also saves screenshots: light and dark, wide and narrow

Needs Debian's chromium, chromium-driver, python3-selenium and python3-numpy.
"""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

import numpy as np
from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import attention
import behaviour
import corners
import diagnosis
import sample
import written
from assemble import assemble
from decode import data_of, decode, place_of

# In seconds, for an idle computer. They are off by default, so that a test on a busy one does not fail.
OPENS_WITHIN = 2.0
STEPS_WITHIN = 0.050
PLAYED = 2  # moments at the end of a step
OUTSIDE = ["<script src", "<link", "@import", "fetch("]


def start_browser(profile):
    options = Options()
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-timer-throttling",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.set_page_load_timeout(60)
    browser.set_script_timeout(60)
    return browser


class PageTest(unittest.TestCase):
    """The browser, and ways to inspect the page, for both kinds of tests."""

    browser = None
    shown = None  # the current screen's width, height and dark
    folder = None  # the samples' folder
    limits = False  # whether exceeding a time limit fails

    def open(self, file, width=1400, height=900, dark=False):
        self.screen(width, height, dark)
        self.browser.get(pathlib.Path(file).resolve().as_uri())

    def open_sample(self, name, **screen):
        file = pathlib.Path(self.folder) / f"{name}.html"
        self.open(file, **screen)
        return data_of(file)

    def open_step(self, step, **screen):
        """Opens a page of one step, a dictionary in the page's format."""
        file = pathlib.Path(self.folder) / "got.html"
        file.write_text(assemble({"version": 1, "title": "got", "left_out": [], "steps": [step]}), encoding="utf-8")
        self.open(file, **screen)

    def screen(self, width, height, dark=False):
        if PageTest.shown == (width, height, dark):
            return
        PageTest.shown = (width, height, dark)
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def run_js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def formulas(self, half):
        """The formulas in the heading of a half of the story, without shapes."""
        script = """
            const text = (part) => part.firstElementChild?.textContent ?? part.textContent;
            const formulas = document.querySelectorAll(`#stage .heading.${arguments[0]} .formula`);
            return [...formulas].map((formula) => [...formula.children].map(text).join(""));"""
        return self.run_js(script, half)

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def moment(self):
        return self.run_js("return state.moment")

    def hover(self, canvas, x, y):
        """Points at a position of a canvas, in pixels from its corner. Returns the tooltip's lines."""
        size = canvas.size
        ActionChains(self.browser).move_to_element_with_offset(
            canvas, x - size["width"] // 2, y - size["height"] // 2
        ).perform()
        return self.find("#tooltip").text.split("\n")

    def wait_for(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.05)

    def tearDown(self):
        errors = [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(errors, [], "the browser's console")


class EveryPage:
    """Properties of every page; `file` is its path."""

    file = None

    @classmethod
    def setUpClass(cls):
        cls.data = data_of(cls.file)
        cls.is_open = False

    def setUp(self):
        if not self.is_open:
            self.open(self.file)
            type(self).is_open = True
            return
        self.screen(1400, 900)
        self.run_js("go({ view: 'story', step: 0, moment: 0 }); scrollTo(0, 0)")

    def test_needs_nothing_else(self):
        text = pathlib.Path(self.file).read_text(encoding="utf-8")
        shell = re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)
        self.assertLess(len(shell.encode()), 300_000)
        for outside in OUTSIDE:
            self.assertNotIn(outside, text)
        self.assertEqual(self.run_js("return performance.getEntriesByType('resource').length"), 0)

    def test_opens_soon(self):
        if not self.limits:
            self.skipTest("without --limits")
        timing = "const [t] = performance.getEntriesByType('navigation'); return t.loadEventEnd - t.startTime"
        times = []
        for _ in range(3):
            self.open(self.file)
            times.append(self.run_js(timing) / 1000)
        self.hold("it opens in", min(times), OPENS_WITHIN)

    def test_steps_at_once(self):
        """Shows about 100 moments from the whole step, including layout."""
        script = """
          const times = [], { length } = currentStep().moments, every = Math.ceil(length / 100);
          for (let i = 0; i < length; i += every) {
            const start = performance.now();
            go({ moment: i });
            document.body.offsetHeight;
            times.push(performance.now() - start);
          }
          return times;"""
        times = np.min([self.run_js(script) for _ in range(self.repeats())], axis=0)
        self.hold("a step takes at most", times.max() / 1000, STEPS_WITHIN)

    def repeats(self):
        """The number of timed runs. With limits it is the best of three, as other load only adds time."""
        return 3 if self.limits else 1

    def hold(self, what, time, limit):
        print(f"{what} {1000 * time:.0f} ms", end=" ... ")
        if self.limits:
            self.assertLess(time, limit)

    def test_plays_to_the_end(self):
        for step in sorted({0, len(self.data["steps"]) - 1}):
            self.run_js("go({ step: arguments[0], moment: 0 })", step)
            last = self.run_js("return currentStep().moments.length - 1")
            self.run_js("go({ moment: Math.max(0, arguments[0]) })", last - PLAYED)
            self.run_js("place('speed').value = '16'")
            # In one script, since a step of two moments may end before the next command arrives.
            self.assertIn("Pause", self.run_js("place('play').click(); return place('play').textContent"))
            self.wait_for(lambda: self.moment() == last, 30)
            self.wait_for(lambda: "Play" in self.find("#play").text)

    def test_shows_the_numbers_of_the_data(self):
        """Compares the inspector's tables of each value and gradient of the first step, number by number."""
        for number, node in enumerate(self.data["steps"][0]["nodes"][:40]):
            for which in ("value", "gradient"):
                array = node[which]
                if not array or np.prod(array["shape"]) > 2000:
                    continue
                shown = self.run_js(
                    """
                    const node = prepareStep(page.steps[0]).nodes[arguments[0]], array = node[arguments[1]];
                    const result = tableOf(node, array, lastAxes(array.shape), { name: "" });
                    const rows = [...result.querySelectorAll("tbody tr")];
                    return rows.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent));""",
                    number,
                    which,
                )
                expected = decode(array)
                expected = (
                    expected.reshape((-1,) + expected.shape[-2:])[0] if expected.ndim > 1 else expected.reshape(1, -1)
                )
                read = np.array([[float(text.replace("∞", "inf")) for text in row] for row in shown], dtype=np.float32)
                np.testing.assert_array_equal(read, expected, err_msg=f"{which} of node {number}")

    def test_contributions_add_up(self):
        """The sums of the page's contributions are the gradients of the data."""
        nodes = self.data["steps"][0]["nodes"]
        totals = self.run_js(
            """
            const sum = (parts) => numbersOf(addArrays(parts.map(({ part }) => part))).join(" ");
            return prepareStep(page.steps[0]).nodes.map(partsOf).map((parts) => (parts.length ? sum(parts) : ""));"""
        )
        for number, (node, total) in enumerate(zip(nodes, totals)):
            if not total or not node["gradient"] or node["gradient"].get("pooled"):
                continue
            expected = decode(node["gradient"]).ravel()
            total = np.array(total.split(), dtype=np.float64)
            finite = np.isfinite(expected) & np.isfinite(total)
            atol = 1e-5 * np.abs(expected[finite]).max(initial=0) + 1e-12
            np.testing.assert_allclose(total[finite], expected[finite], rtol=1e-4, atol=atol, err_msg=f"node {number}")

    def test_tells_the_number_under_the_pointer(self):
        self.open(self.file)  # a page can open at another moment than the first
        canvas = self.find("#stage canvas.heatmap")
        words = self.hover(canvas, canvas.size["width"] - 4, canvas.size["height"] - 12)[0]
        node = self.run_js("return currentMoment().node.inputs[0] ?? currentMoment().node.number")
        step = self.run_js("return state.step")
        self.assert_number(words, self.data["steps"][step]["nodes"][node]["value"])

    def assert_number(self, words, array):
        """Expects "name[i, j] = x" to be the array's number at this position."""
        place, number = place_of(words)
        if place is not None:
            self.assertEqual(np.float32(number), decode(array)[place])

    def test_fits_a_narrow_screen(self):
        self.screen(480, 800)
        for view in self.run_js("return VIEWS.filter((view) => !place(`tab-${view}`).hidden)"):
            self.run_js("go({ view: arguments[0] })", view)
            self.assertLessEqual(self.run_js("return document.documentElement.scrollWidth"), 480, view)


def main():
    parser = argparse.ArgumentParser(description="Tests the page in a browser.")
    parser.add_argument("--examples", metavar="FOLDER", help="where the built examples are, to test their pages too")
    parser.add_argument("--limits", action="store_true", help="fail where a page is slow")
    parser.add_argument("--pictures", metavar="FOLDER", help="keep screenshots there")
    parser.add_argument("-k", metavar="PATTERN", action="append", help="only the tests whose names have that in them")
    parser.add_argument("files", nargs="*", help="pages to test, instead of the samples")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        PageTest.folder, PageTest.limits = temporary, options.limits
        files, cases = [pathlib.Path(file) for file in options.files], []
        if not files:
            sample.main(temporary)
            files = [pathlib.Path(temporary) / f"{name}.html" for name in sample.SAMPLES]
            cases += attention.cases(PageTest) + behaviour.cases(PageTest) + corners.cases(PageTest)
            cases += diagnosis.cases(PageTest)
        if options.examples:
            printed = written.write_pages(options.examples, temporary)
            files += printed
            cases += written.cases(PageTest, printed)
        cases += [type(file.stem, (EveryPage, PageTest), {"file": file}) for file in files]
        loader = unittest.TestLoader()
        loader.testNamePatterns = options.k and [f"*{pattern}*" for pattern in options.k]
        suite = unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)
        PageTest.browser = start_browser(pathlib.Path(temporary) / "profile")
        try:
            result = unittest.TextTestRunner(verbosity=2).run(suite)
            if options.pictures:
                take_pictures(files, pathlib.Path(options.pictures))
        finally:
            PageTest.browser.quit()
    sys.exit(not result.wasSuccessful())


def take_pictures(files, folder):
    folder.mkdir(parents=True, exist_ok=True)
    test = PageTest()
    for file in files:
        for width, dark in ((1400, False), (1400, True), (480, False)):
            for view in ("story", "attention", "health"):
                test.open(file, width=width, dark=dark)
                if test.run_js("return place(`tab-${arguments[0]}`).hidden", view):
                    continue
                test.run_js("go({ view: arguments[0], moment: Math.floor(currentStep().moments.length * 0.7) })", view)
                time.sleep(0.6)
                name = f"{file.stem}_{view}_{width}_{'dark' if dark else 'light'}.png"
                PageTest.browser.save_screenshot(str(folder / name))


if __name__ == "__main__":
    main()
