/// Losses on a link, at its receiving end: the packet has used the link's capacity.
#pragma once

#include "scenario.hpp"

#include <ns3/error-model.h>

namespace replicate
{

/// Loss model of one link direction; `stream` is its random stream.
ns3::Ptr<ns3::ErrorModel> MakeLoss(const LossSpec& spec, std::int64_t stream);

/// Give a random loss another probability.
void ChangeLoss(const ns3::Ptr<ns3::ErrorModel>& loss, double probability);

} // namespace replicate
