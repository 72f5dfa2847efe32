#!/usr/bin/python3
"""The page of `trireme report` as a reader has it: opened in chromium, hovered, sorted, switched to dark, printed.
Usage: report_page_test.py path/to/trireme [FOLDER for screenshots]. Exit code 77: there is no browser here."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from record_files import HOST, make_records

SKIP = 77
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    print("skipped: no selenium (package python3-selenium)")
    sys.exit(SKIP)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not CHROMIUM or not DRIVER:
    print("skipped: no browser (packages chromium, chromium-driver)")
    sys.exit(SKIP)

TRIREME = sys.argv[1]
SCREENSHOTS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
# Of each figure: marks (points, bars, cells), and points of its lines.
FIGURES = {
    "scaling-over-workers": (16, 16),  # two lines of four, and their ideals
    "scaling-efficiency": (8, 8),
    "scaling-time": (150, 0),  # five parts of 2 * (1 + 2 + 4 + 8) ranks
    "threads-and-batch-heat-map": (12, 0),
    "sp-against-mp-bars": (4, 0),
    "servers-over-ps": (6, 6),
    "input-io-overhead": (3, 3),
    "forward-against-backward-time-per-batch": (12, 0),
    "training-loss-epochs": (100, 500),  # of very many points some
    "training-loss-time": (100, 500),
    "training-accuracy": (5, 5),
    "network-bandwidth": (24, 24),
    "network-all-reduce": (24, 24),
}


def start_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--window-size=1360,1000", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


class ReportPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="trireme-page-")
        base = pathlib.Path(cls.folder.name)
        make_records(base / "records")
        made = subprocess.run([TRIREME, "report", base / "records"], capture_output=True, text=True, timeout=60)
        assert made.returncode == 0, made.stderr
        cls.page = base / "records" / "report.html"
        cls.browser = start_browser(base / "profile")
        cls.browser.get(cls.page.as_uri())

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.folder.cleanup()

    def run_script(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def scroll_to(self, element):
        self.run_script("document.documentElement.style.scrollBehavior = 'auto';"
                        "arguments[0].scrollIntoView({block: 'center'})", element)

    def wait_until(self, condition, what):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.05)
        self.fail(f"never {what}")

    def picture(self, name):
        if SCREENSHOTS:
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))

    def test_1_every_figure_has_its_data(self):
        shown = self.run_script("""
            const figures = {}, edge = (box) => [box.left, box.top, box.right, box.bottom];
            for (const drawing of document.querySelectorAll('figure svg')) {
                const marks = [...drawing.querySelectorAll('.mark')], texts = [...drawing.querySelectorAll('text')];
                const boxes = (list) => list.map((element) => edge(element.getBoundingClientRect()));
                // Those of the legend are thicker, or quiet.
                const lines = drawing.querySelectorAll(
                    'polyline[stroke-width="2"], polyline[stroke-dasharray]:not([stroke="var(--quiet)"])');
                const whiskers = [...drawing.querySelectorAll('polyline[stroke-width="1.4"]:not([stroke-dasharray])')];
                figures[drawing.closest('figure').id] = {
                    drawing: edge(drawing.getBoundingClientRect()), marks: boxes(marks), texts: boxes(texts),
                    whiskers: boxes(whiskers), tips: marks.map((mark) => mark.dataset.tip),
                    points: [...lines].reduce((sum, line) => sum + line.points.length, 0),
                    label: drawing.getAttribute('aria-label'), role: drawing.getAttribute('role')};
            }
            return figures;""")
        self.assertEqual({name: (len(figure["marks"]), figure["points"]) for name, figure in shown.items()}, FIGURES)

        def inside(box, frame):
            return all(box[i] >= frame[i] - 1 and box[i + 2] <= frame[i + 2] + 1 for i in (0, 1))

        def apart(box, other):
            return any(box[i] >= other[i + 2] - 1 or box[i + 2] <= other[i] + 1 for i in (0, 1))
        for name, figure in shown.items():
            for box in figure["marks"] + figure["texts"] + figure["whiskers"]:
                self.assertTrue(inside(box, figure["drawing"]), f"{name}: {box} in {figure['drawing']}")
            # Names of the axes and of the legend stand beside each other; only a map has texts on its marks.
            for i, box in enumerate(figure["texts"]):
                others = figure["texts"][i + 1:] + ([] if "map" in name else figure["marks"] + figure["whiskers"])
                for other in others:
                    self.assertTrue(apart(box, other), f"{name}: {box} and {other}")
            for tip in figure["tips"]:
                self.assertRegex(tip, r"(?s)^.+\n.*\d", name)
            self.assertEqual(figure["role"], "img")
            self.assertRegex(figure["label"], r"^.+: .+ over .+")

    def test_2_findings_lead_to_figures(self):
        links = self.browser.find_elements(By.CSS_SELECTOR, "#findings a, #guidelines a, nav.contents a")
        self.assertGreater(len(links), 15)
        for link in links:
            target = link.get_attribute("href").split("#")[1]
            self.assertEqual(len(self.browser.find_elements(By.ID, target)), 1, target)
        text = self.browser.find_element(By.ID, "findings").text
        self.assertIn("4 processes × 1 thread beat 1 process × 4 threads by", text)
        self.picture("top")

    def test_3_tables_sort(self):
        table = self.browser.find_element(By.CSS_SELECTOR, "figure table.data")
        self.scroll_to(table)
        titles = [header.text for header in table.find_elements(By.TAG_NAME, "th")]
        column = titles.index("images/s")
        button = table.find_elements(By.CSS_SELECTOR, "th button")[column]

        def values():
            return self.run_script("return [...arguments[0].tBodies[0].rows].map(r => Number(r.cells[arguments[1]].dataset.v))",
                                   table, column)
        before = values()
        button.click()
        self.assertEqual(values(), sorted(before))
        self.assertEqual(table.find_elements(By.TAG_NAME, "th")[column].get_attribute("aria-sort"), "ascending")
        button.click()
        self.assertEqual(values(), sorted(before, reverse=True))
        self.assertNotEqual(values(), before)

    def test_4_tables_copy(self):
        box = self.browser.find_element(By.CSS_SELECTOR, "figure .tablebox")
        self.scroll_to(box)
        self.run_script("window.copied = null; navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        button = box.find_element(By.CSS_SELECTOR, "button.copy")
        button.click()
        self.wait_until(lambda: button.text == "Copied", "said that it was copied")
        lines = self.run_script("return window.copied").split("\n")
        self.assertEqual(len(lines), 1 + len(box.find_elements(By.CSS_SELECTOR, "tbody tr")))
        self.assertEqual(lines[0].split("\t")[0], box.find_element(By.TAG_NAME, "th").text)

    def hover(self, selector, place, aside=0):
        """What is shown to who points so many pixels beside a mark."""
        mark = self.browser.find_elements(By.CSS_SELECTOR, selector)[place]
        self.scroll_to(mark)
        ActionChains(self.browser).move_to_element_with_offset(mark, aside, 0).perform()
        self.wait_until(lambda: "on" in (mark.get_attribute("class") or "").split(), "showed what the mark is")
        tip = self.browser.find_element(By.CLASS_NAME, "tip")
        self.assertTrue(tip.is_displayed())
        self.assertTrue(self.run_script("""const box = arguments[0].getBoundingClientRect();
            return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;""", tip))
        return tip.text

    def test_5_hovering_shows_the_spread(self):
        for aside in (0, 12):  # marks are small: beside one is near enough
            text = self.hover("#scaling-over-workers .mark", 2, aside)
            self.assertIn("workers: 4", text)
            self.assertRegex(text, r"all_reduce: 36\d[\d.]* \((95 %|range): [\d.,]+ to [\d.,]+\)")
            self.assertIn("5 runs", text)
        self.picture("hover")
        self.assertRegex(self.hover("#scaling-time .mark", 7), r"rank 1\ncompute: \d")
        self.assertRegex(self.hover("#sp-against-mp-bars .mark", 0), r"64\nSP: \d.*\(.* to .*\), 5 runs")
        self.assertRegex(self.hover("#threads-and-batch-heat-map .mark", 5), r"threads.*: 2, batch.*: 16\n\d.* to ")
        self.picture("hover-map")
        self.assertRegex(self.hover("#training-loss-epochs .mark", 50), r"epoch: 2\.5\d?\n0\.6\d+, 1 run$")
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "svg .mark title"), [])  # one tip, not two
        ActionChains(self.browser).move_to_element(self.browser.find_element(By.TAG_NAME, "footer")).perform()
        self.wait_until(lambda: not self.browser.find_element(By.CLASS_NAME, "tip").is_displayed(), "hid the tip")

    def fill(self):
        return self.run_script("return getComputedStyle(document.querySelector('figure .mark')).fill")

    def emulate(self, media="", **features):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": media, "features": [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]})

    def test_6_dark_and_light(self):
        def ground():
            return self.run_script("return getComputedStyle(document.body).backgroundColor")
        dark, light = ("rgb(15, 20, 26)", "rgb(107, 155, 255)"), ("rgb(247, 248, 250)", "rgb(37, 99, 235)")
        self.assertEqual((ground(), self.fill()), light)
        self.emulate(prefers_color_scheme="dark")
        self.wait_until(lambda: ground() == dark[0], "followed the system to dark")
        self.assertEqual(self.fill(), dark[1])
        self.picture("dark")
        button = self.browser.find_element(By.CSS_SELECTOR, "button.theme")
        self.scroll_to(button)
        button.click()
        self.assertEqual((ground(), self.fill()), light)
        button.click()
        self.assertEqual((ground(), self.fill()), dark)
        self.assertEqual(button.text, "Light")
        self.emulate(media="print", prefers_color_scheme="dark")
        self.assertEqual(self.fill(), light[1])  # paper is white
        self.emulate(prefers_color_scheme="dark")
        button.click()
        self.emulate()

    def test_7_prints(self):
        sheet = self.browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        self.assertGreater(len(sheet["data"]), 50000)
        if SCREENSHOTS:
            import base64
            (SCREENSHOTS / "print.pdf").write_bytes(base64.b64decode(sheet["data"]))

    def test_8_narrow_screens_do_not_scroll_sideways(self):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False})
        try:
            width = self.run_script("return document.documentElement.scrollWidth")
            # A drawing keeps a size that can be read, and scrolls in its own box.
            smallest = self.run_script("""return Math.min(...[...document.querySelectorAll('figure svg')].map((svg) =>
                9.5 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width));""")
            boxes = self.run_script("""return [...document.querySelectorAll('.plot')].filter((box) =>
                box.getBoundingClientRect().right > 390 || box.scrollWidth <= box.clientWidth).length;""")
            self.run_script("window.scrollTo(0, 0)")
            self.picture("narrow")
            self.scroll_to(self.browser.find_element(By.CSS_SELECTOR, "figure"))
            self.picture("narrow-figure")
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.assertLessEqual(width, 390)
        self.assertGreater(smallest, 7)
        self.assertEqual(boxes, 0)

    def test_9_nothing_was_asked_for_and_nothing_went_wrong(self):
        self.assertIn(HOST, self.browser.find_element(By.CSS_SELECTOR, ".facts").text)  # text, not markup
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, ".facts b"), [])
        asked = []
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        self.assertIn(self.page.as_uri(), asked)
        # The browser's own first tab is none of ours.
        own = (self.page.as_uri(), "data:", "chrome:", "chrome-untrusted:")
        self.assertEqual([url for url in asked if not url.startswith(own)], [])
        self.assertEqual([entry["message"] for entry in self.browser.get_log("browser")], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
