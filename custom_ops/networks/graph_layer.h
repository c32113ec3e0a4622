// Parses a graph layer; what it is stands in network.h.
#ifndef NEUROEVO_NETWORKS_GRAPH_LAYER_H_
#define NEUROEVO_NETWORKS_GRAPH_LAYER_H_

#include "networks/layer_words.h"
#include "networks/network.h"

namespace neuroevo {

// layer: has the shape of its input; all but its place in theta is set. Throws Error naming the layer and the edge.
void ParseGraph(const LayerWords& words, Layer* layer);

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_GRAPH_LAYER_H_
