"use strict";
// The Pareto front of fitness and cost: no member up to a generation is fitter at no higher cost.

inspector.frontTrace = ({ x, y, generations }, generation) => {
  const known = Array.from(generations.keys()).filter((place) => generations[place] <= generation);
  known.sort((a, b) => x[a] - x[b] || y[b] - y[a]);
  const front = known.filter((place, at) => known.slice(0, at).every((other) => y[other] < y[place]));
  const line = { shape: "hv", color: inspector.css("--second"), width: 2 };
  const [across, up] = [x, y].map((values) => front.map((place) => values[place]));
  return { x: across, y: up, type: "scatter", mode: "lines+markers", name: "Pareto front", hoverinfo: "skip", showlegend: false, line, marker: { size: 6, color: line.color } };
};
