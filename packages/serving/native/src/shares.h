// How clients share a limit.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>

namespace mycelia::serving {

// What somebody holds of a Share.
struct Part {
  size_t all = 0;
  size_t beyond = 0;  // of it what is more than its own
};

// A limit that nobody can use up for the others. A half is divided among the connections that there may be: each has its
// own part for sure. Of the other half nobody gets more than he leaves: a connection as much as its client could still
// get, and a client so as much as is free.
struct Share {
  size_t own, common, used = 0;  // used: of common

  Share(size_t limit, size_t connections)
      : own(std::max<size_t>(limit / 2 / std::max<size_t>(connections, 1), 1)), common(limit - limit / 2) {}

  size_t beyond(const Part& connection, size_t more) const {
    return std::max(connection.all + more, own) - std::max(connection.all, own);
  }
  bool may_take(const Part& client, const Part& connection, size_t more) const {
    const size_t extra = beyond(connection, more);
    return !extra || extra + connection.beyond + client.beyond + used <= common;
  }
  void take(Part* client, Part* connection, size_t more) {
    const size_t extra = beyond(*connection, more);
    for (Part* part : {client, connection}) {
      part->all += more;
      part->beyond += extra;
    }
    used += extra;
  }
  void give_back(Part* client, Part* connection, size_t less) {
    const size_t extra = std::max(connection->all, own) - std::max(connection->all - less, own);
    for (Part* part : {client, connection}) {
      part->all -= less;
      part->beyond -= extra;
    }
    used -= extra;
  }
};

// A client: all connections from an IPv4 address, an IPv6 network of 64 bits, or a process of this host.
struct Peer {
  std::string name;
  size_t connections = 0;
  Part calls, bytes;
};

}  // namespace mycelia::serving
