"""The report in a real browser: chromium, headless, with a small driver added to the page.

The driver is a script at the end of a copy of the page. It does what a reader would do and leaves
what it saw in an element, which ``--dump-dom`` prints.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from multikernel.report import write_report
from multikernel.report.labels import short_labels
from tests.report.pages import leaderboard, searched

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)"
)

DRIVER = """
<script>
(() => {
  const seen = {};
  const press = (target, key) =>
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const tip = document.getElementById("tip");
  seen.ready = document.documentElement.dataset.ready;
  seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  seen.paper = getComputedStyle(document.body).backgroundColor;
  seen.width = innerWidth;
  seen.wide = document.documentElement.scrollWidth - innerWidth;
  const charts = [...document.querySelectorAll("svg.chart")];
  const size = (part) => part.getBoundingClientRect();
  seen.charts = charts.length;
  seen.empty = charts.filter((c) => size(c).width < 50 || size(c).height < 10
    || !c.querySelector("polyline, rect, circle")).length;
  const closed = (part) => part.closest("details") !== null;
  const marks = [...document.querySelectorAll("svg polyline, svg circle, svg rect")];
  seen.misplaced = marks.filter((mark) => {
    const box = size(mark.ownerSVGElement), own = size(mark), room = 3;
    return !closed(mark) && (own.left < box.left - room || own.right > box.right + room
      || own.top < box.top - room || own.bottom > box.bottom + room);
  }).length;
  const source = document.querySelector("main").innerHTML;
  seen.nan = /NaN|Infinity|undefined/.test(source);
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name);

  // Arrow keys go from mark to mark and say what they are.
  const heat = document.querySelector("#alignments svg.chart");
  heat.focus();
  seen.focused = document.activeElement === heat;
  press(heat, "ArrowRight");
  seen.first = tip.hidden ? "" : tip.textContent;
  press(heat, "ArrowRight");
  seen.second = tip.textContent;
  press(heat, "ArrowDown");
  seen.below = tip.textContent;
  press(heat, "Escape");
  seen.gone = tip.hidden;

  // Enter on a kernel takes it out of every picture, and a second one brings it back.
  const key = document.querySelector('#weights .key[data-key="k0"]');
  const drawn = [...document.querySelectorAll('[data-s="k0"]')];
  seen.places = new Set(drawn.map((part) => part.closest("section").id)).size;
  press(key, "Enter");
  const pressed = (on) => drawn.every((part) => part.classList.contains("off") !== on)
    && key.getAttribute("aria-pressed");
  seen.off = pressed(false);
  seen.line = getComputedStyle(document.querySelector('#spectrum polyline[data-s="k0"]')).display;
  press(key, " ");
  seen.on = pressed(true);
  document.querySelector('[data-show="used"]').click();
  seen.used = document.querySelectorAll('#weights .key[aria-pressed="true"]').length;
  document.querySelector('[data-show="all"]').click();

  // Pointing at a mark.
  const mark = document.querySelector("#points circle.m");
  mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 30, clientY: 30 }));
  seen.pointed = tip.hidden ? "" : tip.textContent;

  const reachable = [...document.querySelectorAll("a[href], button, summary, [tabindex='0']")];
  seen.unreachable = charts.filter((c) => !c.classList.contains("interval")
    && !reachable.includes(c)).length;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
</script>
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    model, X, y = searched()
    path = tmp_path_factory.mktemp("browser") / "page.html"
    write_report(model, X, y, path, cv_results=leaderboard().to_dict())
    return model, path


def browse(path: Path, *flags: str) -> tuple[str, str]:
    """The page's elements after its scripts have run, the browser's log."""
    assert CHROMIUM is not None
    # A profile of its own: the lock of a browser that is still closing would stop the next one.
    home = tempfile.mkdtemp(prefix="home-", dir=path.parent)
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        f"--user-data-dir={home}",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--enable-logging=stderr",
        "--v=0",
        "--virtual-time-budget=3000",
        *flags,
        "--dump-dom",
        path.as_uri(),
    ]
    environment = {**os.environ, "HOME": str(path.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, done.stderr


def console(log: str) -> list[str]:
    return [line for line in log.splitlines() if ":CONSOLE" in line]


def drive(path: Path, *flags: str, late: bool = False) -> tuple[dict, str]:
    """What the driver saw, at once or when everything has been loaded, and the browser's log."""
    driven = path.with_name("driven.html")
    driver = DRIVER
    if late:
        driver = driver.replace("(() => {", 'addEventListener("load", () => {', 1)
        driver = driver.replace("})();\n</script>", "});\n</script>")
    text = path.read_text(encoding="utf-8")
    driven.write_text(text.replace("</body>", driver + "</body>"), encoding="utf-8")
    dom, log = browse(driven, *flags)
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
    assert found, console(log)
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")), log


def test_the_page_loads_without_complaint_or_request(page):
    _, path = page
    dom, log = browse(path)
    assert console(log) == [] and 'data-ready="yes"' in dom
    seen, log = drive(path, late=True)
    assert console(log) == [] and seen["requests"] == []


def test_a_request_would_be_seen(page):
    """The test above can fail: the policy of the page complains, and without it requests count."""
    _, path = page
    bad, worse = path.with_name("bad.html"), path.with_name("worse.html")
    picture = '<img src="http://127.0.0.1:9/x.png"></body>'
    text = path.read_text(encoding="utf-8").replace("</body>", picture)
    bad.write_text(text, encoding="utf-8")
    assert any("Content Security Policy" in line for line in console(browse(bad)[1]))
    worse.write_text(text.replace("default-src 'none'; ", "").replace("img-src data:", ""), "utf-8")
    seen, _ = drive(worse, late=True)
    assert seen["requests"] == ["http://127.0.0.1:9/x.png"]


def test_a_reader_with_a_keyboard(page):
    model, path = page
    seen, log = drive(path, "--window-size=1280,900")
    assert console(log) == []
    assert seen["ready"] == "yes" and seen["charts"] >= 12
    assert seen["empty"] == seen["misplaced"] == seen["unreachable"] == 0 and not seen["nan"]
    names = set(short_labels(model.kernel_names_))
    assert seen["focused"] and seen["first"] in names
    assert " and " in seen["second"] and seen["second"].partition(" and ")[0] == seen["first"]
    assert seen["below"] and seen["below"] != seen["second"] and seen["gone"]
    assert seen["places"] == 4 and seen["off"] == "false" and seen["on"] == "true"
    assert seen["line"] == "none"
    assert seen["used"] == sum(w > 0 for w in model.kernel_weights_)
    assert seen["pointed"].startswith("sample ")


def test_light_and_dark(page):
    _, path = page
    light, _ = drive(path, "--blink-settings=preferredColorScheme=1")
    dark, _ = drive(path, "--blink-settings=preferredColorScheme=0")
    assert not light["dark"] and dark["dark"] and light["paper"] != dark["paper"]


def test_narrow_screens_do_not_scroll_sideways(page):
    _, path = page
    seen, _ = drive(path, "--window-size=400,800")
    assert seen["width"] <= 500 and seen["wide"] <= 0 and seen["empty"] == 0


# -- paper, no script, other models ---------------------------------------------------------------

LOOK = """
<script>
addEventListener("load", () => {
  const seen = {};
  const shown = (query) => [...document.querySelectorAll(query)]
    .filter((part) => getComputedStyle(part).display !== "none").length;
  const size = (part) => part.getBoundingClientRect();
  const charts = [...document.querySelectorAll("svg.chart")];
  seen.wide = document.documentElement.scrollWidth - innerWidth;
  seen.cut = [...document.querySelectorAll(".scroll")]
    .filter((part) => part.scrollWidth > part.clientWidth + 1).length;
  seen.empty = charts.filter((c) => !c.closest("details")
    && (size(c).width < 40 || size(c).height < 10 || !c.querySelector("polyline, rect, circle")))
    .length;
  const inside = (part) => {
    const box = size(part.ownerSVGElement), own = size(part), room = 4;
    return part.closest("details") || (own.left >= box.left - room && own.right <= box.right + room
      && own.top >= box.top - room && own.bottom <= box.bottom + room);
  };
  const parts = "svg text, svg polyline, svg circle, svg rect";
  seen.misplaced = [...document.querySelectorAll(parts)]
    .filter((part) => !inside(part)).map((part) => part.outerHTML.slice(0, 120));
  const label = (part) => { const r = size(part); return [r.left, r.right, r.top, r.bottom]; };
  seen.overlaps = 0;
  for (const chart of charts) {
    if (chart.closest("details")) continue;
    const ticks = [...chart.querySelectorAll("text.tick")].map(label);
    for (let i = 0; i < ticks.length; i++) for (let j = 0; j < i; j++) {
      const [a, b] = [ticks[i], ticks[j]];
      if (Math.min(a[1], b[1]) - Math.max(a[0], b[0]) > 1
        && Math.min(a[3], b[3]) - Math.max(a[2], b[2]) > 4) seen.overlaps++;
    }
  }
  seen.nav = shown("nav");
  seen.buttons = shown(".buttons");
  dispatchEvent(new Event("beforeprint"));
  seen.closed = document.querySelectorAll("details:not([open])").length;
  seen.scripted = document.documentElement.classList.contains("scripted");
  seen.sections = document.querySelectorAll("main section").length;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>
"""


def look(path: Path, text: str, *flags: str) -> dict:
    """What a look at a page finds, whose source has perhaps been changed."""
    copy = path.with_name("looked-at.html")
    copy.write_text(text.replace("</body>", LOOK + "</body>"), encoding="utf-8")
    dom, log = browse(copy, *flags)
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.S)
    assert found and console(log) == [], console(log)
    return json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_on_paper_nothing_is_cut_off_or_folded_away(page):
    """The rules for paper, applied to a screen as wide as a page between its margins."""
    _, path = page
    text = path.read_text(encoding="utf-8")
    assert text.count("@media print") == 1
    seen = look(path, text.replace("@media print", "@media screen"), "--window-size=700,900")
    assert seen["nav"] == seen["buttons"] == seen["closed"] == 0
    assert seen["wide"] <= 0 and seen["empty"] == 0 and seen["misplaced"] == []
    assert look(path, text, "--window-size=700,900")["nav"] == 1  # the rules are what hides it


def test_the_page_is_printed(page):
    _, path = page
    out = path.with_name("page.pdf")
    browse(path, f"--print-to-pdf={out}")
    data = out.read_bytes()
    assert data.startswith(b"%PDF") and len(data) > 20_000


def test_without_its_script_the_page_shows_the_same(page):
    _, path = page
    text = path.read_text(encoding="utf-8")
    without = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    seen, scripted = look(path, without), look(path, text)
    assert not seen["scripted"] and scripted["scripted"]
    assert seen["buttons"] == 0 < scripted["buttons"]  # no button that does nothing
    for key in ("wide", "empty", "misplaced", "sections"):
        assert seen[key] == scripted[key]


@pytest.mark.filterwarnings("ignore:The signed combination")
@pytest.mark.parametrize(
    "name, width",
    [
        *[(name, 1280) for name in ("one-class", "signed", "vote", "ensemble", "powers")],
        *[(name, width) for name in ("eigenvectors", "n-grams") for width in (1280, 500)],
    ],
)
def test_pages_of_other_models_are_drawn_as_well(name, width, tmp_path):
    from tests.report.test_models import fitted

    model, X, y = fitted(name)
    path = write_report(model, X, y, tmp_path / "page.html")
    seen = look(path, path.read_text(encoding="utf-8"), f"--window-size={width},900")
    assert seen["wide"] <= 0 and seen["empty"] == 0
    assert seen["misplaced"] == [] and seen["overlaps"] == 0
    if width > 1000:
        assert seen["cut"] == 0
