"use strict";
// Common style of plots. Colors are defined by the style sheet; palettes are distinguishable for color-blind readers.

{
  const { byId } = inspector;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Okabe and Ito's palette without yellow, and without black, the color of text.
  const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a5195"];
  const DARK = ["#5ab4f0", "#f0965a", "#3fc79b", "#e3a0c6", "#9fd4f5", "#f2c14e", "#b694d6"];
  // Viridis without the end that has low contrast with the background.
  const VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6dcd59", "#b4de2c"];

  inspector.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  inspector.palette = () => (dark.matches ? DARK : LIGHT);
  inspector.scale = () => {
    const colors = dark.matches ? [...VIRIDIS.slice(2), "#fde725"] : VIRIDIS;
    return colors.map((color, place) => [place / (colors.length - 1), color]);
  };
  // Return the color of a scale at a fraction in [0, 1].
  inspector.between = (scale, share) => {
    const after = scale.findIndex(([at]) => at >= share);
    if (after <= 0) return scale[0][1];
    const [[low, first], [high, second]] = [scale[after - 1], scale[after]];
    const part = (color, place) => parseInt(color.slice(1 + 2 * place, 3 + 2 * place), 16);
    const mixed = [0, 1, 2].map((place) => Math.round(part(first, place) + ((share - low) / (high - low)) * (part(second, place) - part(first, place))));
    return `rgb(${mixed.join(",")})`;
  };
  inspector.faint = (color, alpha) => color + Math.round(alpha * 255).toString(16).padStart(2, "0");

  const axis = (title, more) => ({
    title: { text: title, font: { size: 12, color: inspector.css("--quiet") }, standoff: 8 },
    gridcolor: inspector.css("--grid"),
    linecolor: inspector.css("--line"),
    zerolinecolor: inspector.css("--grid"),
    tickfont: { size: 11, color: inspector.css("--quiet") },
    automargin: true,
    ...more,
  });

  inspector.extent = (values) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  };
  // Return whether Plotly can label a range; the digits of a narrower one repeat.
  inspector.wide = (low, high) => high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high));

  // Options of an integer axis up to a count.
  inspector.countAxis = (count) => (count < 12 ? { dtick: 1 } : {});

  inspector.layout = (x, y, more = {}) => ({
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", color: inspector.css("--text") },
    margin: { l: 56, r: 12, t: 8, b: 40 },
    hovermode: "closest",
    hoverlabel: { bgcolor: inspector.css("--panel"), bordercolor: inspector.css("--line"), font: { size: 12, color: inspector.css("--text") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: inspector.css("--quiet"), activecolor: inspector.css("--accent") },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 }, bgcolor: "rgba(0,0,0,0)" },
    ...more,
    xaxis: axis(x, more.xaxis),
    yaxis: axis(y, more.yaxis),
  });

  // Resize plots with their panels.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) if (target.data) Plotly.Plots.resize(target);
  });
  for (const place of document.querySelectorAll(".plot")) sizes.observe(place);

  // Keep plots local: no link to Plotly's site, and no button that uploads data to its cloud.
  const PRIVATE = { displaylogo: false, showSendToCloud: false, plotlyServerURL: "" };
  const CONFIG = { ...PRIVATE, displayModeBar: "hover", modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
  const configs = {}; // configurations that differ from CONFIG, by plot
  inspector.configure = (id, changes) => (configs[id] = { ...CONFIG, ...changes, modeBarButtonsToRemove: [...CONFIG.modeBarButtonsToRemove, ...changes.modeBarButtonsToRemove] });
  inspector.draw = (id, traces, layout) => Plotly.react(byId(id), traces, layout, configs[id] || CONFIG);

  // Replace errors before the first generation is finished.
  inspector.whyNot = (error) => (inspector.run().generations ? error.message : "No generation is finished yet. This page follows the run.");

  // Display a message in place of a plot.
  inspector.blank = (id, why) => {
    const layout = inspector.layout("", "", {
      xaxis: { visible: false },
      yaxis: { visible: false },
      annotations: [{ text: escapeText(why), showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5, font: { color: inspector.css("--quiet") } }],
    });
    return inspector.draw(id, [], layout);
  };

  // Escape tags, which Plotly parses in texts, and wrap long messages.
  function escapeText(text) {
    const safe = text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
    return safe.replace(/(.{1,70})(\s+|$)/g, "$1<br>");
  }
  inspector.escapeText = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  dark.addEventListener("change", () => inspector.say("theme"));
}
