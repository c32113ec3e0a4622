"use strict";
// Shared by all parts of the page: state, events, requests for data, and formatting.

const inspector = {
  exported: document.documentElement.hasAttribute("data-exported"),
  state: { run: 0, generation: 0, overview: null },
  arrived: new Map(), // data loaded by an export's scripts, by name
  listeners: {},
};

inspector.byId = (id) => document.getElementById(id);

// Events between parts of the page: on("generation", draw), say("generation").
inspector.on = (what, listener) => (inspector.listeners[what] ??= []).push(listener);
inspector.say = (what, ...about) => (inspector.listeners[what] || []).forEach((listener) => listener(...about));

inspector.put = (name, value) => inspector.arrived.set(name, value);

function loadScript(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${name}.js`;
    script.onload = resolve;
    script.onerror = () => reject(new Error("not included in this export"));
    document.head.append(script);
  });
}

// Request data by a name of neuroevo/inspector/inspection.py; throws an Error with the server's message.
inspector.get = async (name) => {
  let value;
  if (inspector.exported) {
    if (!inspector.arrived.has(name)) await loadScript(name);
    value = inspector.arrived.get(name);
  } else {
    let response;
    try {
      response = await fetch(`data/${name}.json`);
    } catch {
      throw new Error("neuroevo inspect has stopped: restart it to continue");
    }
    if (response.status === 403) throw new Error(await response.text());
    value = await response.json();
  }
  if (value.error && value.state === undefined) throw new Error(value.error);
  return value;
};

const KINDS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, i2: Int16Array };

// Decode an array encoded by payload.py.
inspector.array = ({ dtype, data }) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  return new KINDS[dtype](bytes.buffer);
};

// Format a number for display.
inspector.number = (value, digits = 6) =>
  value === null || value === undefined || Number.isNaN(value)
    ? "–"
    : Number(value).toLocaleString("en-US", { maximumSignificantDigits: digits });

// Create an element with children or text; text is never parsed as HTML, since a run's files are not trusted.
inspector.make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

inspector.options = (select, entries, chosen) => {
  select.replaceChildren(
    ...entries.map(([value, text]) => {
      const option = inspector.make("option", { value }, text);
      option.selected = String(value) === String(chosen);
      return option;
    }),
  );
};

inspector.run = () => inspector.state.overview.runs[inspector.state.run];

// Wrap an async function so that of calls during a running call only the latest is executed afterwards.
inspector.latest = (work) => {
  let busy = false;
  let next = null;
  return async (...args) => {
    next = args;
    if (busy) return;
    busy = true;
    while (next) {
      const now = next;
      next = null;
      await work(...now);
    }
    busy = false;
  };
};
