#include "networks/graph_layer.h"

#include <string>
#include <string_view>

namespace neuroevo {

namespace {

constexpr size_t kFirstEdge = 4;  // index of the first edge's word

Edge ParseEdge(const LayerWords& words, size_t i) {
  const std::string_view word = words[i];
  const size_t middle = word.find('>');
  Edge edge{0, 0};
  if (middle == std::string_view::npos || !ParseNumber(word.substr(0, middle), &edge.from) ||
      !ParseNumber(word.substr(middle + 1), &edge.to)) {
    words.Throw("an edge is '", words[i], "', expected FROM>TO, the numbers of two nodes");
  }
  return edge;
}

}  // namespace

void ParseGraph(const LayerWords& words, Layer* layer) {
  if (words.size() < kFirstEdge) {
    words.Throw("has ", words.size(), " words, expected at least 4: graph UNITS OUTPUTS STD FROM>TO...");
  }
  const int64_t inputs = ValuesOf(layer->in);
  const int units = words.Positive(1, "the number of units"), outputs = words.Positive(2, "the number of outputs");
  const int64_t nodes = inputs + units, first_output = nodes - outputs;
  if (outputs > units) words.Throw("the number of outputs is ", outputs, ", expected at most its ", units, " units");
  if (nodes > kMaxValues) words.Throw("is too large: an activation may have ", kMaxValues, " values");
  layer->kind = Layer::Kind::kGraph;
  layer->units = units;
  layer->edges.reserve(words.size() - kFirstEdge);
  for (size_t i = kFirstEdge; i < words.size(); ++i) {
    const Edge edge = ParseEdge(words, i);
    if (edge.from < 0 || edge.from >= first_output) {
      words.Throw("the edge ", words[i], " starts at node ", edge.from, ", expected one in [0, ", first_output,
                  "), the inputs and the units that are not outputs");
    }
    if (edge.to < inputs || edge.to >= nodes) {
      words.Throw("the edge ", words[i], " ends at node ", edge.to, ", expected one in [", inputs, ", ", nodes,
                  "), the units");
    }
    if (edge.from >= edge.to) words.Throw("the edge ", words[i], " is not feedforward, expected FROM less than TO");
    if (!layer->edges.empty()) {
      const Edge& last = layer->edges.back();
      if (edge.to < last.to || (edge.to == last.to && edge.from <= last.from)) {
        words.Throw("the edge ", words[i], " follows ", words[i - 1],
                    ", expected each edge once, in ascending order of TO, then of FROM");
      }
    }
    layer->edges.push_back(edge);
  }
  layer->out = {1, 1, outputs};
  layer->weights = static_cast<int64_t>(layer->edges.size()) + units;
  layer->init_scale = static_cast<float>(words.Deviation(3));
}

}  // namespace neuroevo
