"""The page of tiny.viz: what is kept, how it is served, and what a browser shows of it."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import tiny
from tiny import viz

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError:
    webdriver = None
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PROGRAM = """
from tiny import Tensor
x = Tensor.arange(3 * 20 * 20).reshape(1, 3, 20, 20).float().realize()
w = (Tensor.arange(8 * 27).reshape(8, 3, 3, 3).float() / 100).realize()
y = x.conv2d(w).relu()
y.name = "relu1"
y.max_pool2d().sum(axis=(2, 3)).softmax(-1).numpy()
"""


def recorded(text, folder):
    """The record of a program, and its line, as `python -m tiny.viz --save` writes them."""
    path = pathlib.Path(folder) / "record.json"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TINY_")}
    subprocess.run([sys.executable, "-B", "-m", "tiny.viz", "--save", path, "-c", text], check=True, timeout=100,
                   env={**clean, "TINY_THREADS": "2"})
    return json.loads(path.read_text())


class Kept(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            cls.kept = recorded(PROGRAM, folder)
        cls.record = json.loads(cls.kept["record"])

    def test_schedules(self):
        program = self.record["programs"][-1]
        kernels = {kernel["name"]: kernel for kernel in self.record["kernels"]}
        self.assertTrue(all(one["name"] in kernels for one in program["kernels"]))
        written = [use["buffer"] for one in program["kernels"] for use in one["buffers"] if use["access"] == "write"]
        self.assertEqual(program["buffers"][written[-1]]["kind"], "output")
        graph = self.record["graphs"][program["graph"]]
        self.assertTrue(all(source < i for i, node in enumerate(graph["nodes"]) for source in node["src"]))
        self.assertIn("relu1", {node["name"] for node in graph["nodes"]})
        self.assertLessEqual({"ReduceAxis", "Max", "Buffer"}, {node["op"] for node in graph["nodes"]})

    def test_kernels(self):
        for kernel in self.record["kernels"]:
            names = [one["name"] for one in kernel["passes"]]
            self.assertEqual((names[0], names[-1]), ("decompose", "place_polls"))
            self.assertTrue(all(("text" in one) == one["changed"] for one in kernel["passes"]))
            self.assertIn(f"void {kernel['name']}(", kernel["c"])
            self.assertIn("store", kernel["nest"])
            self.assertTrue(kernel["asm"] and kernel["scheduled"] and kernel["tree"])
        self.assertTrue(any(kernel["ranges"] for kernel in self.record["kernels"]))

    def test_rules(self):
        steps = [step for graph in self.record["graphs"] for one in graph["passes"] for step in one["rewrites"]]
        steps += [step for kernel in self.record["kernels"] for one in kernel["passes"] for step in one["rewrites"]]
        self.assertTrue(steps)
        for step in steps:
            self.assertNotEqual(step["before"], step["after"])
            self.assertRegex(step["rule"], r"^constant folding$|^\w+\.cpp:\d+: .* -> ")

    def test_times(self):
        launches = [event for event in self.record["traceEvents"] if event["cat"] == "launch"]
        self.assertTrue(any("relu1" in event["args"]["computes"] for event in launches))
        self.assertIn("schedule", {event["cat"] for event in self.record["traceEvents"]})

    def test_nothing_without_the_option(self):
        with self.assertRaisesRegex(tiny.Error, "without the option viz = 1"):
            viz.record(tiny.Context(viz=0))


class Served(unittest.TestCase):
    def setUp(self):
        self.server = viz.Server('{"graphs":[]}', "a line")
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def get(self, path, host=None):
        connection = http.client.HTTPConnection(*self.server.server_address)
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{self.server.server_address[1]}")
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), body

    def test_files(self):
        status, kind, body = self.get("/")
        self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
        self.assertIn(b'src="viz.js"', body)
        self.assertEqual(self.get("/viz.js")[1], "text/javascript; charset=utf-8")
        self.assertEqual(self.get("/viz.css")[1], "text/css; charset=utf-8")
        self.assertEqual(self.get("/record.json")[2], b'{"graphs":[]}')
        self.assertEqual(json.loads(self.get("/about.json")[2]), {"text": "a line"})

    def test_nothing_else(self):
        for path in ("/__init__.py", "/../viz/__init__.py", "/etc/passwd", "/nothing"):
            self.assertEqual(self.get(path)[0], 404)
        self.assertEqual(self.get("/record.json", "elsewhere.example")[0], 403)

    def test_nothing_from_elsewhere(self):
        for name in ("index.html", "viz.js", "graph.js", "kernel.js", "schedule.js", "timeline.js", "dom.js", "viz.css"):
            text = self.get(f"/{name}")[2].decode().replace("http://www.w3.org/2000/svg", "")
            self.assertNotRegex(text, r"https?://")

    def test_at_the_end_of_a_program(self):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TINY_")}
        process = subprocess.Popen([sys.executable, "-B", "-c", "import tiny; tiny.Tensor([1.0, 2]).sum().item()"],
                                   stderr=subprocess.PIPE, text=True, env={**clean, "VIZ": "1", "VIZ_PORT": "0"})
        try:
            url = process.stderr.readline().split()[2]
            connection = http.client.HTTPConnection(url.split("/")[2])
            connection.request("GET", "/record.json")
            self.assertEqual(len(json.loads(connection.getresponse().read())["programs"]), 1)
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(20), 0)
            process.stderr.close()


@unittest.skipUnless(webdriver and CHROMIUM and DRIVER, "no chromium, chromium-driver or selenium is here")
class Shown(unittest.TestCase):
    """In a browser."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            kept = recorded(PROGRAM, folder)
        cls.record = json.loads(kept["record"])
        cls.server = viz.Server(kept["record"], kept["about"])
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        self.browser.get("about:blank")
        self.open("")

    def tearDown(self):
        self.assertEqual([line for line in self.browser.get_log("browser") if line["level"] == "SEVERE"], [])

    def open(self, place):
        self.browser.get(self.server.url + place)
        self.wait(lambda: self.all("body[data-ready]"))

    def wait(self, condition):
        # What is asked may be replaced while it answers.
        waiting = WebDriverWait(self.browser, 10, ignored_exceptions=[NoSuchElementException, StaleElementReferenceException])
        waiting.until(lambda browser: condition())

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def title(self):
        return self.one("h2.title").text

    def test_a_click_on_a_kernel_shows_it(self):
        program = len(self.record["programs"]) - 1
        self.open(f"#/schedule/{program}")
        self.wait(lambda: self.title() == f"schedule {program + 1}")
        kernels = [kernel["name"] for kernel in self.record["programs"][program]["kernels"]]
        self.assertEqual(sorted(one.find_element(By.TAG_NAME, "text").text for one in self.all("svg.graph .kernel")),
                         sorted(kernels))
        self.assertTrue(self.all("svg.graph path.edge"))
        shown = next(one for one in self.all("svg.graph .kernel") if "relu1" in one.text)
        name = shown.find_element(By.TAG_NAME, "text").text
        shown.click()
        self.wait(lambda: self.title() == name)
        self.assertIn("relu1", self.one(".facts").text)
        self.assertIn("GFLOPS", self.one(".facts").text)

        kernel = next(kernel for kernel in self.record["kernels"] if kernel["name"] == name)
        self.assertEqual([one.get_attribute("data-pass") for one in self.all(".passes a")],
                         ["scheduled", *(one["name"] for one in kernel["passes"])])
        self.one('.passes a[data-pass="options"]').click()
        self.wait(lambda: "options took" in self.one("main").text)
        self.assertTrue(self.all("pre .plus") and self.all("pre .minus"))
        fired = next(one for one in kernel["passes"] if one["name"] == "options")["rewrites"]
        self.assertEqual([one.text for one in self.all(".rewrites .rule code")], [step["rule"] for step in fired])

        for tab, selector, part in (("nest", "#nest", "loop"), ("c", "#code", f"void {name}("), ("asm", "#asm", "machine code"),
                                    ("tree", "#tree", "store"), ("nest", ".nest .range", "")):
            self.one(f'.tabs a[data-tab="{tab}"]').click()
            self.wait(lambda selector=selector, part=part: self.all(selector) and part in self.one(selector).text)

    def test_the_graph_of_tensors(self):
        program = len(self.record["programs"]) - 1
        self.open(f"#/schedule/{program}/graph")
        self.wait(lambda: self.all("svg.graph .output"))
        graph = self.record["graphs"][self.record["programs"][program]["graph"]]
        changed = [number for number, one in enumerate(graph["passes"]) if one["changed"]]
        self.assertEqual([one.get_attribute("value") for one in self.all("#pass option")],
                         ["-1", *(str(number) for number in changed)])
        self.assertTrue(self.all("svg.graph .reduce"))
        self.one('.tabs a[data-tab="rules"]').click()
        self.wait(lambda: self.all("main .rewrites") or "no rule fired" in self.one("main").text)

    def test_the_time_line(self):
        self.one('nav a[data-view="time"]').click()
        self.wait(lambda: self.all("canvas#time"))
        painted = self.browser.execute_script(
            "const c = document.getElementById('time');"
            "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].some((v) => v)")
        self.assertTrue(painted)
        self.assertIn(f"{len(self.record['traceEvents'])} events", self.one("main").text)

    def test_the_table_and_the_list(self):
        self.one('nav a[data-view="kernels"]').click()
        self.wait(lambda: len(self.all("main table tr")) == len(self.record["kernels"]) + 1)
        self.one("#filter").send_keys("relu1")
        self.wait(lambda: 0 < len(self.all("#list .kernel")) < len(self.record["kernels"]))
        wanted = self.one("#list .kernel").get_attribute("data-kernel")
        self.one("#list .kernel").click()
        self.wait(lambda: self.title() == wanted)
        self.one("#filter").clear()

    def test_the_graph_moves(self):
        self.wait(lambda: self.all("svg.graph"))
        svg = self.one("svg.graph")
        before = svg.get_dom_attribute("viewBox")
        ActionChains(self.browser).move_to_element_with_offset(svg, -300, 0).click_and_hold().move_by_offset(40, 30).release().perform()
        self.assertNotEqual(svg.get_dom_attribute("viewBox"), before)
        self.one(".tools button").click()
        self.wait(lambda: svg.get_dom_attribute("viewBox"))

    def test_what_is_not_there(self):
        self.open("#/kernel/r_no_such")
        self.wait(lambda: "r_no_such was not compiled" in self.one("main").text)


if __name__ == "__main__":
    unittest.main()
