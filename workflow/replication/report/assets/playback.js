// Playback: windows and queue of a run as bars, at a moment that a slider or the clock moves.
(() => {
  "use strict";
  const SECONDS = 12; // A run is played in so many, however long it was.

  // The last sample at or before a moment; null before the first.
  function at(line, moment) {
    let low = 0;
    let high = line.time_s.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (line.time_s[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low ? line.value[low - 1] : null;
  }

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function bars(run) {
    const windows = run.lines.filter((line) => line.quantity === "cwnd");
    const queues = run.lines.filter((line) => line.panel === "queue");
    const groups = [
      [windows, "segments", (line) => `${line.flow}: window`],
      [queues, "packets", () => "Queue"],
    ];
    return groups.flatMap(([lines, unit, name]) => {
      const highest = Math.max(1e-9, ...lines.flatMap((line) => line.value));
      return lines.map((line) => {
        const bar = element("span", { class: "level" });
        const text = element("span", { class: "num" });
        const row = element("div", { class: "row" });
        row.append(element("span", {}, name(line)), element("span", { class: "track" }, bar), text);
        const show = (moment) => {
          const value = at(line, moment);
          bar.style.width = `${(100 * (value ?? 0)) / highest}%`;
          text.textContent = value === null ? "–" : `${value.toPrecision(3)} ${unit}`;
        };
        return { row, show };
      });
    });
  }

  function build(box) {
    const run = JSON.parse(document.getElementById(box.dataset.run).textContent);
    const shown = bars(run);
    if (!shown.length) return;
    const button = element("button", { type: "button" }, "Play");
    const slider = element("input", {
      type: "range", min: 0, max: run.end, step: run.end / 500, "aria-label": "Moment of the run",
    });
    const clock = element("output", { class: "num" });
    const show = () => {
      const moment = Number(slider.value);
      clock.textContent = `${moment.toFixed(1)} s of ${run.end} s`;
      slider.setAttribute("aria-valuetext", clock.textContent);
      shown.forEach((bar) => bar.show(moment));
    };
    let playing = 0;
    const stop = () => {
      cancelAnimationFrame(playing);
      playing = 0;
      button.textContent = "Play";
    };
    const play = () => {
      button.textContent = "Pause";
      const from = Number(slider.value) < run.end ? Number(slider.value) : 0;
      let start = null;
      const step = (now) => {
        start ??= now;
        slider.value = Math.min(run.end, from + ((now - start) / 1000 / SECONDS) * run.end);
        show();
        if (Number(slider.value) < run.end) playing = requestAnimationFrame(step);
        else stop();
      };
      playing = requestAnimationFrame(step);
    };
    button.addEventListener("click", () => (playing ? stop() : play()));
    slider.addEventListener("input", () => {
      stop();
      show();
    });
    box.append(element("div", { class: "controls" }, button, slider, clock));
    box.append(...shown.map((bar) => bar.row));
    box.hidden = false;
    show();
  }

  document.querySelectorAll(".playback").forEach(build);
})();
