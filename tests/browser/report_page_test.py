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
CHARTS = 12  # canvases; the heat map is a table


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
        figures = json.loads(self.run_script("return document.getElementById('report-data').textContent"))
        self.assertEqual(len(figures), CHARTS + 1)
        drawn = 0
        for figure in figures:
            if figure["kind"] == "heat_map":
                cells = self.browser.find_elements(By.CSS_SELECTOR, f"#{figure['id']} table.heat td b")
                self.assertEqual(len(cells), sum(len(series["points"]) for series in figure["series"]))
                continue
            drawn += 1
            # What the chart has, and how much of it lies inside the plot.
            shown = self.run_script("""
                const canvas = document.querySelector('#' + arguments[0] + ' canvas'), chart = Chart.getChart(canvas);
                const area = chart.chartArea;
                return {sizes: chart.data.datasets.map((d) => d.data.length),
                        inside: chart.data.datasets.map((d, i) => chart.getDatasetMeta(i).data.filter((e) =>
                            e.x >= area.left - 1 && e.x <= area.right + 1 && e.y >= area.top - 1 &&
                            e.y <= area.bottom + 1).length),
                        ink: canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v)};
                """, figure["id"])
            expected = [len(series["points"]) for series in figure["series"]]
            self.assertEqual(shown["sizes"], expected, figure["id"])
            self.assertEqual(shown["inside"], expected, figure["id"])
            self.assertTrue(shown["ink"], figure["id"])
        self.assertEqual(drawn, CHARTS)

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

    def test_5_hovering_shows_the_spread(self):
        canvas = self.browser.find_element(By.CSS_SELECTOR, "figure canvas")
        self.scroll_to(canvas)
        place = self.run_script("""
            const chart = Chart.getChart(arguments[0]), point = chart.getDatasetMeta(0).data[2];
            const box = arguments[0].getBoundingClientRect();
            return [point.x - box.width / 2, point.y - box.height / 2];""", canvas)
        ActionChains(self.browser).move_to_element_with_offset(canvas, int(place[0]), int(place[1])).perform()

        def tooltip():
            return self.run_script("""const tip = Chart.getChart(arguments[0]).tooltip;
                return tip && tip.opacity > 0 ? tip.title.concat(tip.body.flatMap((b) => b.lines)).join('|') : ''""", canvas)
        self.wait_until(tooltip, "showed a tooltip")
        self.assertIn("workers: 4", tooltip())
        self.assertRegex(tooltip(), r"(95 %|range): [\d.,]+ to [\d.,]+")
        self.assertIn("5 runs", tooltip())
        self.picture("hover")

    def test_6_dark_and_light(self):
        def ground():
            return self.run_script("return getComputedStyle(document.body).backgroundColor")
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.wait_until(lambda: ground() == "rgb(15, 20, 26)", "followed the system to dark")
        self.picture("dark")
        button = self.browser.find_element(By.CSS_SELECTOR, "button.theme")
        self.scroll_to(button)
        button.click()
        self.assertEqual(ground(), "rgb(247, 248, 250)")
        button.click()
        self.assertEqual(ground(), "rgb(15, 20, 26)")
        self.assertEqual(button.text, "Light")
        button.click()
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

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
            self.run_script("window.scrollTo(0, 0)")
            self.picture("narrow")
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.assertLessEqual(width, 390)

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
