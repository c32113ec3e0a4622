// Parser of graph layers, which network.h describes.
#ifndef NEUROEVO_NETWORKS_GRAPH_LAYER_H_
#define NEUROEVO_NETWORKS_GRAPH_LAYER_H_

#include "networks/layer_words.h"
#include "networks/network.h"

namespace neuroevo {

// Parse a graph layer. layer: its input shape must be set; this sets all other members except its offset in theta.
// Throws an Error that names the layer and the edge.
void ParseGraph(const LayerWords& words, Layer* layer);

}  // namespace neuroevo

#endif  // NEUROEVO_NETWORKS_GRAPH_LAYER_H_
