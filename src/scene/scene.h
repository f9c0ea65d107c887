/* scene: what the files of the simulations are made of: YAML with places, typed values with exact errors, and
 * quantities over time with exact integrals. Pure: no clock; files other than the text itself come through a callback.
 * It does not know what is simulated, and no product module uses it. */
#ifndef SCENE_SCENE_H
#define SCENE_SCENE_H

#include "scene/curve.h"
#include "scene/reader.h"
#include "scene/tree.h"

#endif
