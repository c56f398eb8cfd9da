"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const tip = document.getElementById("tip");

  // The text of a mark is its <title>. It is moved aside, or the browser would show it a second time.
  for (const mark of document.querySelectorAll("svg .m, svg text")) {
    const title = mark.querySelector("title");
    if (title) { mark.dataset.t = title.textContent; mark.setAttribute("aria-label", title.textContent); title.remove(); }
  }

  const show = (mark, x, y) => {
    tip.textContent = mark.dataset.t;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest ? event.target.closest("svg [data-t]") : null;
    if (mark) show(mark, event.clientX, event.clientY); else if (!at) hide();
  });

  // Keyboard: a drawing takes the focus, arrows go from mark to mark.
  let at = null;
  const leave = () => { if (at) at.classList.remove("at"); at = null; hide(); };
  for (const chart of document.querySelectorAll("svg.chart:not(.interval)")) {
    if (!chart.querySelector(".m")) continue;
    chart.setAttribute("tabindex", "0");
    chart.addEventListener("blur", leave);
    chart.addEventListener("keydown", (event) => {
      const marks = [...chart.querySelectorAll(".m")].filter((mark) => !mark.closest(".off"));
      const heat = chart.querySelector(".heat");
      const across = heat ? Number(heat.dataset.columns) : 1;
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
      if (event.key === "Escape") { leave(); return; }
      if (!step || !marks.length) return;
      event.preventDefault();
      const from = marks.indexOf(at);
      const next = from < 0 ? 0 : from + step;
      if (next < 0 || next >= marks.length) return;
      leave();
      at = marks[next];
      at.classList.add("at");
      const box = at.getBoundingClientRect();
      show(at, box.left + box.width / 2, box.top + box.height / 2);
    });
  }

  // Switches: one for each series, the same series wherever it is drawn.
  const keys = [...document.querySelectorAll(".key")];
  const set = (name, on) => {
    for (const part of document.querySelectorAll("[data-s]")) {
      if (part.dataset.s === name) part.classList.toggle("off", !on);
    }
    for (const key of keys) if (key.dataset.key === name) key.setAttribute("aria-pressed", String(on));
  };
  for (const key of keys) {
    key.setAttribute("role", "button");
    key.setAttribute("tabindex", "0");
    key.setAttribute("aria-pressed", "true");
    const flip = () => set(key.dataset.key, key.getAttribute("aria-pressed") !== "true");
    key.addEventListener("click", flip);
    key.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); flip(); }
    });
  }
  const kernels = [...new Set(keys.map((key) => key.dataset.key).filter((name) => /^k\d+$/.test(name)))];
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      const used = new Set((button.dataset.used || "").split(" "));
      for (const name of kernels) set(name, button.dataset.show === "all" || used.has(name));
    });
  }

  // What is folded away on the screen is not on paper.
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });
  document.documentElement.dataset.ready = "yes";
})();
