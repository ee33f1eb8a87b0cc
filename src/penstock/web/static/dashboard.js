// What is only more convenient with JavaScript: charts with a cursor, copying, keys, the theme, live pages.
"use strict";
(function () {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const colour = (tone) => {
    const names = { good: "--good", warn: "--warn", bad: "--bad", calm: "--h3", soft: "--edge", accent: "--accent" };
    return getComputedStyle(document.documentElement).getPropertyValue(names[tone] || "--h3").trim();
  };
  const shade = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Bars are stacked: each series is drawn on the sum of those before it, the last one first.
  function stacked(series) {
    const sums = series[0][2].map(() => 0);
    return series.map(([, , values]) => values.map((value, i) => (sums[i] += value || 0)));
  }

  // What stands under the cursor, in words, beside the title; the legend is the server's.
  function readout(place, figures, at) {
    const words = place.closest("figure").querySelector(".readout");
    if (!words) return;
    if (at === null || at === undefined) { words.textContent = ""; return; }
    const moment = figures.labels.length ? "run " + figures.labels[at] : new Date(figures.x[at] * 1000).toISOString().slice(0, 16).replace("T", " ");
    const unit = figures.unit ? " " + figures.unit : "";
    const values = figures.series.filter((each) => each[2][at] !== null).map((each) => +each[2][at].toFixed(3) + unit + " " + each[0]);
    words.textContent = moment + ": " + values.join(", ");
  }

  function drawn(place) {
    const figures = JSON.parse(place.dataset.chart);
    const isBars = figures.kind === "bars", isByRun = figures.labels.length > 0;
    const heights = isBars ? stacked(figures.series) : figures.series.map((each) => each[2]);
    const order = figures.series.map((_, i) => i);
    if (isBars) order.reverse();
    const moments = (_, splits, __, ___, apart) => splits.map((at) => {
      if (isByRun) return Number.isInteger(at) && figures.labels[at] !== undefined ? figures.labels[at] : "";
      const iso = new Date(at * 1000).toISOString();
      return apart >= 86400 ? iso.slice(8, 10) + " " + MONTHS[+iso.slice(5, 7) - 1] : iso.slice(11, 16);
    });
    const x = isByRun ? figures.x.map((_, i) => i) : figures.x;
    const axis = { stroke: shade("--soft"), grid: { stroke: shade("--line"), width: 1 }, ticks: { stroke: shade("--line"), width: 1 }, font: "11px system-ui" };
    const options = {
      width: place.clientWidth || 300,
      height: 150,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: isByRun ? { time: false, range: () => [-0.6, x.length - 0.4] } : {},
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
      },
      axes: [{ ...axis, size: 28, values: moments, ...(isByRun ? { incrs: [1, 2, 5, 10, 20, 50] } : {}) }, { ...axis, size: 46 }],
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
      hooks: { setCursor: [(plot) => readout(place, figures, plot.cursor.idx)] },
      series: [{}].concat(order.map((i) => {
        const [label, tone, values] = figures.series[i];
        return {
          label: label,
          stroke: colour(tone),
          width: isBars ? 0 : 1.8,
          dash: tone === "soft" && !isBars ? [5, 4] : undefined,
          fill: isBars ? colour(tone) : undefined,
          paths: isBars ? uPlot.paths.bars({ size: [0.8, 40] }) : undefined,
          points: { show: !isBars && values.length < 60, size: 5 },
          spanGaps: true,
        };
      })),
    };
    place.replaceChildren();
    place.plot = new uPlot(options, [x].concat(order.map((i) => heights[i])), place);
  }

  function drawAll(within) {
    if (typeof uPlot === "undefined") return;
    within.querySelectorAll("[data-chart]").forEach((place) => { if (!place.plot) drawn(place); });
  }

  function redrawAll() {
    document.querySelectorAll("[data-chart]").forEach((place) => { place.plot = null; drawn(place); });
  }

  function offer(within) {
    if (navigator.clipboard) within.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = false; });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    navigator.clipboard.writeText(button.dataset.copy).then(() => {
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("q").focus();
    } else if (isGoing) {
      const item = document.querySelector('.menu a[data-key="' + CSS.escape(event.key) + '"]');
      if (item) item.click();
    }
    isGoing = event.key === "g" && !isGoing;
  });

  function offerTheme() {
    const button = document.getElementById("theme");
    const isDark = () => {
      const chosen = document.documentElement.dataset.theme;
      return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", "Switch to the " + button.textContent.toLowerCase() + " theme"); };
    button.hidden = false;
    tell();
    button.addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      try { localStorage.setItem("penstock-theme", theme); } catch (error) { /* it holds for this page */ }
      tell();
      redrawAll();
    });
  }

  // The first message says how things are; the page knows that already. Later ones are gathered for a while,
  // and nothing is loaded under somebody's hands: while they type, or have opened something. The server says for
  // how long, because it shares its machine with workers: the more pages are open, the longer; and not all at once.
  const reloadMs = (message) => 1000 * JSON.parse(message.data).reload_s * (0.75 + 0.5 * Math.random());
  let isFirst = true, due = null;
  const isInUse = (live) => live.querySelector("details[open]") || live.contains(document.activeElement.closest("input, select"));
  function reload() {
    due = null;
    const live = document.getElementById("live");
    if (live && !document.hidden && !isInUse(live)) htmx.trigger(live, "penstock:changed");
  }
  document.addEventListener("htmx:sseMessage", (event) => {
    if (!isFirst && due === null) due = setTimeout(reload, reloadMs(event.detail));
    isFirst = false;
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !isFirst) reload(); });

  // The menu of a phone is wider than its screen.
  function showWhereWeAre() {
    const item = document.querySelector(".menu a[aria-current]"), menu = item && item.closest(".menu");
    if (menu) menu.scrollLeft = item.offsetLeft - 40;
  }

  document.addEventListener("DOMContentLoaded", () => { offerTheme(); offer(document); drawAll(document); showWhereWeAre(); });
  document.addEventListener("htmx:afterSettle", (event) => { offer(event.target); drawAll(document); });
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(redrawAll, 150); });
})();
