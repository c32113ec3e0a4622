"use strict";
// Dots of members, or cells, drawn as pixels on a canvas over Plotly's axes. Without a graphics card, 10,000 dots take a few ms this
// way, but 80 ms as a Plotly trace and 60 to 400 ms as images or paths on a canvas.

{
  const { byId, make } = inspector;
  const NEAR = 12; // maximum distance in pixels between the mouse and a dot that it points at
  let plot;
  let canvas;
  let ring; // around the dot under the mouse
  let shown = null; // { x, y, classes, palette, size, order } of dots, { grid, classes, palette } of cells
  let area = null; // position of the axes in pixels of the plot, and the maps from their values to pixels

  const opacity = (count) => (count > 100 ? 0.5 : 0.85); // overlapping dots of a large population are darker
  const rgb = (color) => (color.startsWith("#") ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)) : color.match(/\d+/g).map(Number));

  // Return the coverage of each pixel of a square by a centered disc, in [0, opacity].
  function disc(diameter, opacity) {
    const width = Math.ceil(diameter) + 1;
    const cover = (at) => Math.min(Math.max(diameter / 2 + 0.5 - Math.hypot((at % width) + 0.5 - width / 2, Math.floor(at / width) + 0.5 - width / 2), 0), 1);
    return { width, alpha: Float32Array.from({ length: width * width }, (_, at) => opacity * cover(at)) };
  }

  // Blend a disc in a color over the pixels of an image with non-premultiplied alpha.
  function stamp(image, { width, alpha }, [red, green, blue], left, top) {
    const { data } = image;
    for (let row = Math.max(0, -top); row < Math.min(width, image.height - top); row++) {
      for (let column = Math.max(0, -left); column < Math.min(width, image.width - left); column++) {
        const over = alpha[row * width + column];
        if (over === 0) continue;
        const at = 4 * ((top + row) * image.width + left + column);
        const under = (data[at + 3] / 255) * (1 - over);
        const share = over / (over + under);
        data[at] += (red - data[at]) * share;
        data[at + 1] += (green - data[at + 1]) * share;
        data[at + 2] += (blue - data[at + 2]) * share;
        data[at + 3] = 255 * (over + under);
      }
    }
  }

  // Sort members by class: later classes are drawn over earlier ones.
  function ordered(classes, count) {
    const starts = new Uint32Array(count + 1);
    for (const each of classes) starts[each + 1]++;
    for (let each = 0; each < count; each++) starts[each + 1] += starts[each];
    const order = new Uint32Array(classes.length);
    classes.forEach((each, member) => (order[starts[each]++] = member));
    return order;
  }

  function straight(axis) {
    const [from, to] = axis.range;
    const begin = axis.d2p(from);
    return { at: begin, per: (axis.d2p(to) - begin) / (to - from), from };
  }

  function lay() {
    const { xaxis, yaxis } = plot._fullLayout;
    area = { left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length, x: straight(xaxis), y: straight(yaxis) };
    stack();
    const scale = window.devicePixelRatio || 1;
    canvas.style.cssText = `position: absolute; pointer-events: none; left: ${area.left}px; top: ${area.top}px; width: ${area.width}px; height: ${area.height}px`;
    const [width, height] = [Math.round(area.width * scale), Math.round(area.height * scale)];
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  }

  const pixel = ({ at, per, from }, value) => at + (value - from) * per;

  // Dots are above Plotly's traces, cells below them, so that walls and paths remain visible.
  function stack() {
    const last = plot.querySelector(".gl-container");
    const above = shown && shown.grid ? plot.querySelector(".main-svg").previousSibling : last;
    if (ring.parentNode !== last.parentNode) last.after(ring);
    if (above === canvas) return;
    if (above) above.after(canvas);
    else last.parentNode.prepend(canvas);
  }

  // Return the edges of a grid's cells along an axis, in pixels.
  function edges({ low, high, shape }, axis, along) {
    return Array.from({ length: shape[axis] + 1 }, (_, at) => pixel(along, low[axis] + ((high[axis] - low[axis]) * at) / shape[axis]));
  }

  // Return left, top, width and height of a cell, in pixels.
  function box(cell) {
    const rows = shown.grid.shape[1];
    const [column, row] = [Math.floor(cell / rows), cell % rows];
    const [left, right] = [shown.across[column], shown.across[column + 1]].sort((a, b) => a - b);
    const [top, bottom] = [shown.up[row], shown.up[row + 1]].sort((a, b) => a - b);
    return [left, top, right - left, bottom - top];
  }

  function paintCells(pen) {
    const scale = window.devicePixelRatio || 1;
    [shown.across, shown.up] = [edges(shown.grid, 0, area.x), edges(shown.grid, 1, area.y)];
    pen.clearRect(0, 0, canvas.width, canvas.height);
    shown.grid.champions.forEach((champion, cell) => {
      if (champion < 0) return;
      const [left, top, width, height] = box(cell);
      const [x, y] = [Math.round(left * scale), Math.round(top * scale)];
      pen.fillStyle = shown.palette[shown.classes[cell]];
      pen.fillRect(x, y, Math.max(Math.round((left + width) * scale) - x, 1), Math.max(Math.round((top + height) * scale) - y, 1));
    });
  }

  function paint() {
    ring.hidden = true;
    if (!area || !canvas.width || !canvas.height) return;
    stack();
    const pen = canvas.getContext("2d", { willReadFrequently: true }); // software rendering
    if (shown && shown.grid) return paintCells(pen);
    const image = new ImageData(canvas.width, canvas.height);
    if (shown) {
      const scale = window.devicePixelRatio || 1;
      const form = disc(shown.size * scale, opacity(shown.x.length));
      const colors = shown.palette.map(rgb);
      const corner = (axis, value) => Math.round(pixel(axis, value) * scale - form.width / 2);
      for (const member of shown.order) stamp(image, form, colors[shown.classes[member]], corner(area.x, shown.x[member]), corner(area.y, shown.y[member]));
    }
    pen.putImageData(image, 0, 0);
  }

  // Return the cell at a position of the plot, or undefined if it has no champion.
  function cellAt(right, low) {
    const within = (places, at) => places.findIndex((each, next) => next > 0 && (each - at) * (places[next - 1] - at) <= 0) - 1;
    const [column, row] = [within(shown.across, right), within(shown.up, low)];
    const cell = column * shown.grid.shape[1] + row;
    return column >= 0 && row >= 0 && shown.grid.champions[cell] >= 0 ? cell : undefined;
  }

  // Return the member whose dot is nearest to the mouse, or the cell under the mouse, or undefined.
  function nearest(event) {
    if (!shown || !area) return undefined;
    const box = plot.getBoundingClientRect();
    const [right, low] = [event.clientX - box.x - area.left, event.clientY - box.y - area.top];
    if (right < 0 || low < 0 || right > area.width || low > area.height) return undefined;
    if (shown.grid) return cellAt(right, low);
    let found;
    let least = NEAR * NEAR;
    for (let member = 0; member < shown.x.length; member++) {
      const distance = (pixel(area.x, shown.x[member]) - right) ** 2 + (pixel(area.y, shown.y[member]) - low) ** 2;
      if (distance < least) [found, least] = [member, distance];
    }
    return found;
  }

  function point(event) {
    const member = event && nearest(event);
    ring.hidden = member === undefined;
    if (member === undefined) return inspector.say("pointed");
    const size = shown.size + 6;
    const around = () => [pixel(area.x, shown.x[member]) - size / 2, pixel(area.y, shown.y[member]) - size / 2, size, size];
    const [left, top, width, height] = shown.grid ? box(member) : around();
    const corners = shown.grid ? "border-radius: 0" : "";
    ring.style.cssText = `left: ${area.left + left}px; top: ${area.top + top}px; width: ${width}px; height: ${height}px; ${corners}`;
    inspector.say("pointed", member, { left: area.left + left + width, top: area.top + top });
  }

  // Draw dots of `size` pixels at (x, y) in the color palette[classes[member]]; x is null for no dots.
  inspector.showDots = (x, y, classes, palette, size) => {
    shown = x && { x, y, classes, palette, size, order: ordered(classes, palette.length) };
    paint();
  };
  // Draw the cells of a grid that have a champion in the color palette[classes[cell]].
  inspector.showCells = (grid, classes, palette) => {
    shown = { grid, classes, palette };
    paint();
  };
  inspector.shownDots = () => shown && { x: Array.from(shown.x || []), y: Array.from(shown.y || []) };

  // Download the plot as a picture; Plotly only includes its own traces, so the dots or cells are added as an image.
  function picture() {
    const { width, height } = plot._fullLayout;
    const image = { source: canvas.toDataURL(), xref: "paper", yref: "paper", x: 0, y: 1, sizex: 1, sizey: 1, sizing: "stretch", layer: shown && shown.grid ? "below" : "above" };
    const layout = { ...plot.layout, images: [image], paper_bgcolor: inspector.css("--panel") };
    Plotly.downloadImage({ data: plot.data, layout }, { format: "png", scale: 2, width, height, filename: "population" });
  }
  const CAMERA = { width: 24, height: 24, path: "M9 3 7 6H4a2 2 0 0 0-2 2v10a2 2 0 0 0 2 2h16a2 2 0 0 0 2-2V8a2 2 0 0 0-2-2h-3l-2-3Zm3 5a5 5 0 1 1 0 10 5 5 0 0 1 0-10Z" };
  inspector.configure("cloud", {
    doubleClick: false, // Plotly would fit the axes to its own traces
    modeBarButtonsToRemove: ["toImage", "resetScale2d"],
    modeBarButtonsToAdd: [
      { name: "whole", title: "Reset axes", icon: Plotly.Icons.home, click: () => inspector.say("whole") },
      { name: "picture", title: "Download plot as a PNG", icon: CAMERA, click: picture },
    ],
  });

  inspector.on("ready", () => {
    plot = byId("cloud");
    canvas = make("canvas", { class: "dots" });
    ring = make("div", { class: "ring" });
    const again = () => {
      lay();
      paint();
    };
    plot.on("plotly_afterplot", again);
    plot.on("plotly_relayouting", again);
    plot.on("plotly_doubleclick", () => inspector.say("whole"));
    plot.addEventListener("mousemove", point);
    plot.addEventListener("mouseleave", () => point());
    plot.addEventListener("click", (event) => {
      const member = nearest(event);
      if (member !== undefined && event.target.closest(".nsewdrag")) inspector.say("picked", member, event);
    });
    again();
  });
}
