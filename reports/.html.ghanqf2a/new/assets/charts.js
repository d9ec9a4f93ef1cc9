// Charts: each is loaded and drawn when it comes near the view, the others when the page is idle.
(() => {
  "use strict";
  const waiting = new Set(document.querySelectorAll("figure.chart"));

  function loadScript(path) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = path;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${path} cannot be read`));
      document.head.append(script);
    });
  }

  const PANEL_MARGIN = 90; // Axis labels and padding beside a panel, in pixels.

  function wraps(spec) {
    return Array.isArray(spec.concat) && spec.columns > 1;
  }

  // One panel takes the width that there is, as many panels stand beside each other as fit, and
  // panels below each other shrink to it.
  function fit(spec, plot) {
    const width = plot.clientWidth;
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
    return { ...spec, width: "container", autosize: { type: "fit-x", contains: "padding" } };
  }

  async function draw(figure) {
    if (!waiting.delete(figure)) return;
    const plot = figure.querySelector(".plot");
    try {
      await loadScript(figure.dataset.script);
      const spec = fit(window.replicationCharts[figure.id], plot);
      delete window.replicationCharts[figure.id];
      await show(plot, spec, figure.id);
      plot.dataset.drawn = "";
    } catch (error) {
      plot.textContent = `The chart cannot be drawn (${error.message}); its data are below.`;
      console.error(error);
    }
  }

  // Labels make panels wider than their width says: fewer stand side by side if they overflow.
  async function show(plot, spec, name) {
    for (;;) {
      plot.replaceChildren();
      await vegaEmbed(plot, spec, {
        mode: "vega-lite",
        renderer: "svg",
        ast: true, // No code is made from text, so the page can forbid it.
        actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
        downloadFileName: name,
        tooltip: { theme: "custom" },
        logLevel: 1, // Errors only: a table of which nothing was run has no extent to warn of.
      });
      if (!wraps(spec) || plot.scrollWidth <= plot.clientWidth) return;
      spec = { ...spec, columns: spec.columns - 1 };
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
