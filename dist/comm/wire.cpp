#include "tern/dist/comm/wire.h"

namespace tern {

std::string to_string(Wire wire) {
  switch (wire) {
    case Wire::plain: return "plain";
    case Wire::mac: return "mac";
    case Wire::tls: return "tls";
  }
  return "unknown";  // a number that another process sent
}

}  // namespace tern
