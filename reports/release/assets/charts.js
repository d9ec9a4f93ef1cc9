// Charts are loaded and drawn when they come near the view, or when the page is idle.
(() => {
  "use strict";
  const waiting = new Set(document.querySelectorAll("figure.chart[data-script]"));

  function loadScript(path) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = path;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${path} cannot be read`));
      document.head.append(script);
    });
  }

  const PANEL_MARGIN = 90; // Axis labels and padding around a panel, in pixels.

  // A hidden chart has no width, so it gets that of the element that hides it.
  function widthOf(plot) {
    let element = plot;
    while (!element.clientWidth && element.parentElement) element = element.parentElement;
    return element.clientWidth;
  }

  function wraps(spec) {
    return Array.isArray(spec.concat) && spec.columns > 1;
  }

  // A single panel takes the whole width. Panels are placed in as many columns as fit, or shrunk to
  // one column.
  function fit(spec, plot) {
    const width = widthOf(plot);
    const encoding = spec.encoding ?? {};
    const keys = ["facet", "hconcat", "vconcat", "concat", "repeat"];
    if (wraps(spec)) {
      const needed = Math.max(...spec.concat.map((panel) => panel.width ?? 0)) + PANEL_MARGIN;
      return { ...spec, columns: Math.max(1, Math.floor(width / needed)) };
    }
    if (Array.isArray(spec.vconcat)) {
      const most = Math.max(220, width - PANEL_MARGIN);
      const shrink = (panel) =>
        typeof panel.width === "number" ? { ...panel, width: Math.min(panel.width, most) } : panel;
      return { ...spec, vconcat: spec.vconcat.map(shrink) };
    }
    if (keys.some((key) => key in spec) || "row" in encoding || "column" in encoding) return spec;
    if (typeof spec.width !== "number") return spec;
    plot.classList.add("single");
    const most = parseFloat(getComputedStyle(plot).maxWidth) || width;
    const size = plot.clientWidth ? "container" : Math.min(width, most);
    return { ...spec, width: size, autosize: { type: "fit-x", contains: "padding" } };
  }

  // Files have columns, with texts as indices or run lengths; Vega needs records.
  function records(columns) {
    if (Array.isArray(columns)) return columns;
    const names = Object.keys(columns);
    const full = names.map((name) => {
      const column = columns[name];
      if (Array.isArray(column)) return column;
      const runs = column.runs ?? column.at.map((number) => [number, 1]);
      return runs.flatMap(([number, count]) => Array(count).fill(column.of[number]));
    });
    return full[0].map((_, row) => Object.fromEntries(names.map((name, i) => [name, full[i][row]])));
  }

  async function read(figure) {
    const { script } = figure.dataset;
    const name = script.replace(/^.*\/|\.js$/g, "");
    if (!window.replicationCharts?.[name]) await loadScript(script);
    const spec = window.replicationCharts[name];
    const datasets = Object.entries(spec.datasets ?? {});
    spec.datasets = Object.fromEntries(datasets.map(([key, columns]) => [key, records(columns)]));
    delete window.replicationCharts[name];
    return spec;
  }

  async function draw(figure) {
    if (!waiting.delete(figure)) return;
    const plot = figure.querySelector(".plot");
    const still = [...plot.childNodes];
    try {
      const spec = await read(figure);
      await show(plot, fit(spec, plot));
      offer(figure, spec);
      plot.dataset.drawn = "";
    } catch (error) {
      plot.replaceChildren(...still);
      console.error(error);
    }
  }

  const SETTINGS = {
    mode: "vega-lite",
    renderer: "svg",
    ast: true, // No code is made from text, so the page can forbid it.
    actions: false,
    tooltip: { theme: "custom" },
    logLevel: 1, // Errors only: a table of which nothing was run has no extent to warn of.
  };

  // Legends get fewer columns if the page is narrow.
  function narrowLegends(spec, width) {
    if (width > 480) return spec;
    return JSON.parse(JSON.stringify(spec), (key, value) =>
      key === "labelLimit" ? Math.min(value, 110)
        : key === "legend" && value?.columns > 2 ? { ...value, columns: 2 } : value,
    );
  }

  function narrowPanels(spec, pixels) {
    const narrower = (panel) => ({ ...panel, width: Math.max(160, panel.width - pixels) });
    return { ...spec, vconcat: spec.vconcat.map(narrower) };
  }

  // Labels make panels wider than their nominal width. If they overflow, use fewer columns, or shrink
  // a single column once more.
  async function show(plot, spec) {
    spec = narrowLegends(spec, widthOf(plot));
    for (let shrunk = false; ; ) {
      plot.replaceChildren();
      const { view } = await vegaEmbed(plot, spec, SETTINGS);
      // Screen readers read the description instead of a thousand marks.
      plot.querySelector("svg")?.setAttribute("aria-hidden", "true");
      view.addEventListener("click", (_, item) => follow(item?.datum));
      const overflow = plot.scrollWidth - plot.clientWidth;
      if (overflow <= 0) return;
      if (wraps(spec)) spec = { ...spec, columns: spec.columns - 1 };
      else if (Array.isArray(spec.vconcat) && !shrunk) {
        spec = narrowPanels(spec, overflow);
        shrunk = true;
      } else return;
    }
  }

  // A published number in a chart links to its row, and so to its runs.
  function follow(datum) {
    if (!datum?.study || !datum.table || !datum.row || !datum.column) return;
    const byte = (number) => `+${number.toString(16).padStart(2, "0")}`;
    const quote = (sign) => Array.from(new TextEncoder().encode(sign), byte).join("");
    const parts = [datum.table, datum.row, datum.column].map((part) =>
      String(part).replace(/[^A-Za-z0-9_.,=-]/gu, quote),
    );
    window.location.assign(`${encodeURIComponent(datum.study)}~evidence.html#cell=${parts.join("~")}`);
  }

  // A saved chart has its original width, and dark ink on white for slides.
  async function forPaper(spec) {
    const text = JSON.stringify(spec).replaceAll('"currentColor"', '"#1c2024"');
    const { view } = await vegaEmbed(
      document.createElement("div"),
      { ...JSON.parse(text), background: "white" },
      SETTINGS,
    );
    return view;
  }

  // All data of the chart, one data set after the other.
  function csv(datasets) {
    const rows = Object.values(datasets).flat();
    const names = [...new Set(rows.flatMap(Object.keys))];
    const field = (value) => {
      const text = String(value ?? "");
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = rows.map((row) => names.map((name) => field(row[name])));
    return [names, ...lines].map((line) => `${line.join(",")}\n`).join("");
  }

  const KINDS = {
    csv: async (spec) => ["text/csv", csv(spec.datasets)],
    json: async (spec) => ["application/json", JSON.stringify(spec, null, 1)],
    svg: async (spec) => ["image/svg+xml", await (await forPaper(spec)).toSVG()],
    png: async (spec) => {
      const canvas = await (await forPaper(spec)).toCanvas(2);
      return ["image/png", await new Promise((resolve) => canvas.toBlob(resolve))];
    },
  };

  function offer(figure, spec) {
    for (const button of figure.querySelectorAll("[data-save]")) {
      const kind = button.dataset.save;
      button.hidden = false;
      button.addEventListener("click", async () => {
        const [type, content] = await KINDS[kind](spec);
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([content], { type }));
        link.download = `${figure.dataset.name ?? figure.id}.${kind}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      });
    }
  }

  const idle = window.requestIdleCallback ?? ((task) => setTimeout(task, 200));
  async function drawNext() {
    const [figure] = waiting;
    if (!figure) return;
    await draw(figure);
    idle(drawNext);
  }

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    },
    { rootMargin: "400px" },
  );
  waiting.forEach((figure) => seen.observe(figure));
  window.addEventListener("load", () => setTimeout(() => idle(drawNext), 1500));
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details:not(.chart details)").forEach((details) => (details.open = true));
  });
})();
