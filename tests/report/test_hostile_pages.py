"""Names and labels that are programs: a browser shows them and runs nothing.

The pages are tried without their content security policy, which would stop scripts that were not
escaped: both have to hold.
"""

import base64
import json
import re

import numpy as np
import pytest

import multikernel as mk
from tests.cli.helpers import succeed, write_csv
from tests.report.test_browser import CHROMIUM, browse

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)"
)

HARM = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=2</script>",
    '"><img src=x onerror="window.hacked=3">',
    "' onmouseover='window.hacked=4",
    "<svg onload=window.hacked=5>",
    "</title></style></svg><iframe srcdoc='<script>parent.hacked=6</script>'>",
    "javascript:window.hacked=7",
    "&lt;script&gt;window.hacked=8&lt;/script&gt;",
    "${window.hacked=9}",
    "<!--<script>window.hacked=10//-->",
]

LOOK = """
<script>
addEventListener("load", () => setTimeout(() => {
  for (const part of document.querySelectorAll("*"))
    for (const kind of ["mouseover", "mouseenter", "pointermove", "focus", "click"])
      part.dispatchEvent(new Event(kind, { bubbles: true }));
  for (const link of document.querySelectorAll("a[href]"))
    if (link.href.startsWith("javascript:")) window.hacked = 99;
  const seen = { hacked: window.hacked ?? null,
    foreign: document.querySelectorAll("img, iframe, object, embed, [onload], [onerror]").length,
    scripts: document.scripts.length, text: document.body.innerText };
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(seen))));
  document.body.append(out);
}, 100));
</script></body>
"""


def look(path, text):
    """What the browser made of a page without its policy."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy = path.with_name("tried.html")
    copy.write_text(text.replace("</body>", LOOK), encoding="utf-8")
    dom, log = browse(copy)
    found = re.search(r'<pre id="seen">([\w+/=]*)</pre>', dom)
    assert found, log[-2000:]
    return json.loads(base64.b64decode(found[1]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Reports and a picture of a table whose names, categories and labels are programs."""
    folder, rng, n = tmp_path_factory.mktemp("hostile"), np.random.default_rng(0), 60
    columns = {name: rng.normal(size=n).round(3).tolist() for name in HARM[:7]}
    signal = np.sum(list(columns.values()), axis=0)
    columns["category"] = [HARM[7] if one else HARM[8] for one in rng.random(n) < 0.5]
    target = HARM[9]
    columns[target] = np.where(signal > 0, HARM[1], HARM[2]).tolist()
    data = write_csv(folder / "<img src=x onerror=window.hacked=11>.csv", columns)
    kernels = ("-k", "per_feature(Gaussian(0.5))", "--C", 1, "--folds", 2)
    report, picture = folder / "fit.html", folder / "bank.svg"
    succeed("fit", data, "-y", target, *kernels, "-o", folder / "m.skops", "--report", report)
    succeed("bank", data, "-y", target, *kernels[:2], "--picture", picture)
    return folder


def test_reports_show_names_and_run_nothing(files):
    path = files / "fit.html"
    text = path.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text
    seen = look(path, text)
    assert seen["hacked"] is None and seen["foreign"] == 0
    assert seen["scripts"] == text.count("<script>") + 1  # ours, and the one that looks
    assert HARM[1] in seen["text"] and HARM[9] in seen["text"]


def test_pictures_run_nothing(files):
    picture = (files / "bank.svg").read_text(encoding="utf-8")
    assert "window.hacked" in picture
    seen = look(files / "bank.svg", f"<html><body>{picture}</body></html>")
    assert seen["hacked"] is None and seen["foreign"] == 0 and seen["scripts"] == 1


def test_notebooks_run_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    bank = mk.KernelBank([mk.Gaussian(0.1 * (i + 1)) for i in range(len(HARM))], HARM)
    model = mk.MultiKernelClassifier(bank, "uniform").fit(X, X[:, 0] > 0)
    shown = model._repr_mimebundle_()["text/html"]
    seen = look(tmp_path / "page.html", f"<html><body>{shown}</body></html>")
    assert seen["hacked"] is None and seen["foreign"] == 0 and HARM[0] in seen["text"]


def test_a_program_would_be_seen(files):
    """The tests above can fail."""
    seen = look(files / "bad.html", f"<html><body>{HARM[2]}</body></html>")
    assert seen["hacked"] == 3 and seen["foreign"] == 1
