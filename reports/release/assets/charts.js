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
  const WIDEST = 832; // Panels one below the other are no wider, like a single one.

  // A hidden chart has no width, so it gets that of the element that hides it.
  function widthOf(plot) {
    let element = plot;
    while (!element.clientWidth && element.parentElement) element = element.parentElement;
    return element.clientWidth;
  }

  // The key of the panels of a chart, if it has several.
  function panelsOf(spec) {
    return ["concat", "vconcat"].find((key) => Array.isArray(spec[key]));
  }

  const NARROWEST = 280; // A panel this wide may stand in a row of several.

  // A panel that shares its vertical axis, with the axis' labels if it is the first of its row.
  function withAxis(panel, isFirst) {
    return JSON.parse(JSON.stringify(panel), (_, value) =>
      typeof value?.labels === "boolean" ? { ...value, labels: isFirst, ticks: isFirst } : value,
    );
  }

  // The chart with its panels in so many columns, as wide as fits.
  function inColumns(spec, columns, width) {
    const wide = Math.max(160, Math.min(width / columns, WIDEST) - PANEL_MARGIN);
    const widened = (panel) => (typeof panel.width === "number" ? { ...panel, width: wide } : panel);
    const key = panelsOf(spec);
    const panels = spec[key].map((panel, place) => withAxis(widened(panel), place % columns === 0));
    return { ...spec, ...(key === "concat" && { columns }), [key]: panels };
  }

  // A single panel takes the whole width. Panels are placed in as many columns as fit, and widened
  // to fill them.
  function fit(spec, plot) {
    const width = widthOf(plot);
    const encoding = spec.encoding ?? {};
    const keys = ["facet", "hconcat", "repeat"];
    if (Array.isArray(spec.concat)) {
      const widest = Math.max(...spec.concat.map((panel) => panel.width ?? 0));
      const needed = Math.min(widest, NARROWEST) + PANEL_MARGIN;
      const panels = spec.concat.length;
      const most = Math.max(1, Math.min(panels, Math.floor(width / needed)));
      // Full rows: four panels stand two and two rather than three and one.
      return inColumns(spec, Math.ceil(panels / Math.ceil(panels / most)), width);
    }
    if (Array.isArray(spec.vconcat)) return inColumns(spec, 1, width);
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

  // A legend is no wider than the plot below it: it gets fewer columns, and lines for long labels.
  const CHARACTER = 6; // Pixels of a label's character, and of a symbol with its padding.
  const SYMBOL = 34;
  function narrowLegends(spec, width) {
    const room = Math.round(0.6 * width);
    const longest = (domain) => Math.max(0, ...domain.map((entry) => String(entry).length));
    const narrowed = (legend, domain) => {
      const column = SYMBOL + CHARACTER * longest(domain);
      if (column * (legend.columns ?? 1) <= room) return legend;
      const columns = Math.max(1, Math.min(legend.columns ?? 1, Math.floor(room / column)));
      const lines = `(.{1,${Math.floor((room - SYMBOL) / CHARACTER)}})`;
      const wrapped = `split(trim(replace(datum.label, /${lines}( |$)|${lines.replace("1,", "")}/g, '$1$3\\n')), '\\n')`;
      return { ...legend, columns, labelLimit: room, ...(column > room && { labelExpr: wrapped }) };
    };
    return JSON.parse(JSON.stringify(spec), (key, value) =>
      value?.legend && Array.isArray(value.scale?.domain)
        ? { ...value, legend: narrowed(value.legend, value.scale.domain) }
        : value,
    );
  }

  function narrowPanels(spec, pixels) {
    const key = panelsOf(spec);
    const narrower = (panel) => ({ ...panel, width: Math.max(160, panel.width - pixels) });
    return { ...spec, [key]: spec[key].map(narrower) };
  }

  // Labels make panels wider than their nominal width. If they overflow, shrink the panels once, then
  // use fewer columns.
  async function show(plot, spec) {
    spec = narrowLegends(spec, widthOf(plot));
    const panels = panelsOf(spec);
    for (let shrunk = false; ; ) {
      plot.replaceChildren();
      const { view } = await vegaEmbed(plot, spec, SETTINGS);
      // Screen readers read the description instead of a thousand marks.
      plot.querySelector("svg")?.setAttribute("aria-hidden", "true");
      view.addEventListener("click", (_, item) => follow(item?.datum));
      const overflow = plot.scrollWidth - plot.clientWidth;
      if (overflow <= 0) return;
      if (panels && !shrunk) spec = narrowPanels(spec, Math.ceil(overflow / (spec.columns ?? 1)));
      else if (spec.columns > 1) spec = inColumns(spec, spec.columns - 1, widthOf(plot));
      else return;
      shrunk = !shrunk;
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
      // Spreadsheets compute a text that begins with one of these signs.
      const isFormula = typeof value === "string" && /^[=+@-]/.test(value) && isNaN(value);
      const text = `${isFormula ? "'" : ""}${value ?? ""}`.replaceAll("−", "-");
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
