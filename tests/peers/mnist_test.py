"""Tests of bench/mnist.py. Usage: mnist_test.py FOLDER_OF_BENCH TRIREME."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH = pathlib.Path(sys.argv[1])
TRIREME = sys.argv[2]
sys.dont_write_bytecode = True  # the source tree stays as it was
sys.path.insert(0, str(BENCH))

import line_plot  # noqa: E402
import mnist  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


class Plot(unittest.TestCase):
    def test_curves_stay_in_their_frame(self):
        curves = [line_plot.Curve("a < b", [(0.5, 2.0), (3.0, 0.01)]), line_plot.Curve("c", [(1.0, 0.5), (2.0, 0.2)])]
        picture = xml.etree.ElementTree.fromstring(line_plot.to_svg("title", "x", "y", curves))
        drawn = [line.get("points").split() for line in picture.iter(SVG + "polyline")]
        self.assertEqual([len(points) for points in drawn], [2, 2])
        for point in sum(drawn, []):
            x, y = map(float, point.split(","))
            self.assertTrue(line_plot.LEFT <= x <= line_plot.WIDTH - line_plot.RIGHT, point)
            self.assertTrue(line_plot.TOP <= y <= line_plot.HEIGHT - line_plot.BOTTOM, point)
        words = [element.text for element in picture.iter(SVG + "text")]
        self.assertIn("a < b", words)
        self.assertIn("0.01", words)

    def test_ticks_are_round(self):
        self.assertEqual(line_plot.round_steps(3), [0, 0.5, 1, 1.5, 2, 2.5, 3])
        self.assertEqual(line_plot.round_steps(95), [0, 20, 40, 60, 80])
        self.assertEqual([round(tick, 9) for tick in line_plot.decade_ticks(0.04, 2.4)], [0.05, 0.1, 0.2, 0.5, 1, 2])

    def test_smoothing_takes_what_came_shortly_before(self):
        curve = [{"epoch": 0.04 * i, "loss": loss} for i, loss in enumerate([99, 4, 2, 3, 7])]
        points = mnist.smoothed(curve, "epoch")  # without the first step; then of three points at most
        self.assertEqual([loss for _, loss in points], [4, 3, 3, 4])
        self.assertEqual(mnist.smoothed([{"epoch": 1.0, "loss": 0.5}], "epoch"), [(1.0, 0.5)])

    def test_a_curve_may_be_a_point(self):
        picture = line_plot.to_svg("title", "x", "y", [line_plot.Curve("a", [(1.0, 0.5)])])
        self.assertEqual(len(list(xml.etree.ElementTree.fromstring(picture).iter(SVG + "polyline"))), 1)


class Study(unittest.TestCase):
    def study(self, *more):
        command = [sys.executable, "-B", str(BENCH / "mnist.py"), str(self.folder / "digits"), "--quick", "--epochs=1",
                   "--out", str(self.folder / "records"), "--figures", str(self.folder / "figures"),
                   "--table", str(self.folder / "table.md"), "--trireme", TRIREME, *more]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)

    def setUp(self):
        name = tempfile.TemporaryDirectory()
        self.addCleanup(name.cleanup)
        self.folder = pathlib.Path(name.name)
        subprocess.run([TRIREME, "data", "make", "--out", str(self.folder / "digits"), "--samples", "640",
                        "--validation-samples", "64"], check=True, capture_output=True)  # fmt: skip

    def test_makes_a_table_and_plots_and_goes_on(self):
        modes = ["one"]
        if shutil.which("mpirun"):
            modes.append("all-reduce-2")
        doctor = subprocess.run([TRIREME, "doctor", "--json"], capture_output=True, text=True, check=True)
        if "gRPC" in json.loads(doctor.stdout)["build"]["libraries"]:
            modes += ["server-2", "async-4"]
        first = self.study("--modes=one")
        self.assertEqual(first.returncode, 0, first.stderr)
        again = self.study("--modes=" + ",".join(modes))
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("one process: done before", again.stderr)
        self.assertEqual(again.stderr.count("done before"), 1)
        rows = (self.folder / "table.md").read_text(encoding="utf-8").splitlines()
        self.assertEqual(again.stdout.splitlines(), rows)
        self.assertEqual(len(rows), 2 + len(modes))
        for row in rows[2:]:
            self.assertEqual(len(row.split("|")), len(rows[0].split("|")), row)
            self.assertRegex(row, r"\d\d\.\d\d %")
        for name in ("epochs", "time"):
            picture = xml.etree.ElementTree.parse(self.folder / f"figures/mnist-loss-{name}.svg")
            self.assertEqual(len(list(picture.iter(SVG + "polyline"))), len(modes))

    def test_runs_again_what_was_run_otherwise_or_not_to_its_end(self):
        self.assertEqual(self.study("--modes=one").returncode, 0)
        path = self.folder / "records/one.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        command = record["command"][1:-2]
        build = mnist.read_build(TRIREME)
        self.assertIsNotNone(mnist.read_finished(path, command, build))
        self.assertIsNone(mnist.read_finished(path, command + ["--seed", "2"], build))
        self.assertIsNone(mnist.read_finished(path, command, "trireme 0.0.0 (another one)"))
        path.write_text(json.dumps({**record, "end": "interrupted"}), encoding="utf-8")
        self.assertIsNone(mnist.read_finished(path, command, build))

    def test_says_what_is_wrong(self):
        done = self.study("--modes=two")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--modes two: must be some of one, all-reduce-2", done.stderr)
        shutil.rmtree(self.folder / "digits")
        done = self.study("--modes=one")
        self.assertEqual(done.returncode, 1)
        self.assertIn("mnist: exit code 2", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
