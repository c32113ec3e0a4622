"use strict";
// Trials of a sweep as parallel coordinates: an axis for each key, then the metric.

{
  const { byId, get, number } = inspector;
  let sweep = null;

  function axis(key, values) {
    const numbers = values.every((value) => typeof value === "number");
    const label = key.replace(/^.*\./, "");
    if (!numbers) {
      const names = [...new Set(values.map((value) => JSON.stringify(value)))].sort();
      return { label, values: values.map((value) => names.indexOf(JSON.stringify(value))), tickvals: names.map((_, place) => place), ticktext: names.map((name) => name.replaceAll('"', "")), range: [-0.1, names.length - 0.9] };
    }
    const [low, high] = [Math.min(...values), Math.max(...values)];
    if (low <= 0 || high / low < 20) return { label, values };
    const marks = [0, 0.25, 0.5, 0.75, 1].map((at) => Math.log10(low) + at * Math.log10(high / low));
    return { label: `${label} (log)`, values: values.map(Math.log10), tickvals: marks, ticktext: marks.map((mark) => number(10 ** mark, 3)) };
  }

  function redraw() {
    if (!sweep) return;
    const played = sweep.trials.filter((each) => each.metric !== null && each.metric !== undefined);
    if (!played.length) return inspector.blank("trials", "No trial has finished a generation yet.");
    const metric = played.map((each) => each.metric);
    const dimensions = sweep.keys.map((key, place) => axis(key, played.map((each) => each.values[place])));
    dimensions.push({ label: sweep.metric.replaceAll("_", " "), values: metric });
    const quiet = { size: 11, color: inspector.css("--quiet") };
    const trace = {
      type: "parcoords",
      line: { color: metric, colorscale: inspector.scale(), showscale: false },
      dimensions,
      labelfont: { size: 12, color: inspector.css("--text") },
      tickfont: quiet,
      rangefont: { size: 10, color: "rgba(0,0,0,0)" },
    };
    return inspector.draw("trials", [trace], inspector.layout("", "", { margin: { l: 64, r: 64, t: 44, b: 20 } }));
  }

  inspector.refreshTrials = async () => {
    const { overview } = inspector.state;
    byId("trials-panel").hidden = !overview.sweeps;
    if (!overview.sweeps) return;
    try {
      sweep = (await get("sweep")).sweeps[0];
      const best = sweep.trials.filter((each) => each.metric !== null).sort((a, b) => b.metric - a.metric)[0];
      const failed = sweep.trials.filter((each) => each.status === "failed").length;
      byId("trials-hint").textContent =
        `${sweep.name}: ${sweep.trials.length} trials${failed ? `, ${failed} failed` : ""}${best ? `; the best is trial ${best.trial} with ${number(best.metric)}` : ""}. Drag along an axis to select trials.`;
      await redraw();
    } catch (error) {
      sweep = null;
      await inspector.blank("trials", error.message);
    }
  };
  inspector.on("theme", redraw);
}
