#include "trireme/base/fields.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace trireme {
namespace {

struct Oar {
  std::string side;
  int length = 4;
};

struct Ship {
  std::string name;
  std::int64_t crew = 170;
  double knots = 0;
  std::optional<double> draft = {};
  bool is_sunk = false;
  std::vector<Oar> oars = {};
  std::vector<std::string> ports = {};
  std::vector<std::vector<double>> legs = {};
  Json cargo = {};
};

}  // namespace

template <>
inline constexpr auto kFields<Oar> = std::tuple(field("side", &Oar::side), field("length", &Oar::length));
template <>
inline constexpr auto kFields<Ship> = std::tuple(field("name", &Ship::name), field("crew", &Ship::crew),
                                                 field("knots", &Ship::knots), field("draft", &Ship::draft),
                                                 field("is_sunk", &Ship::is_sunk, Presence::if_set),
                                                 field("oars", &Ship::oars, Presence::if_set),
                                                 field("ports", &Ship::ports, Presence::if_set),
                                                 field("legs", &Ship::legs, Presence::if_set),
                                                 field("cargo", &Ship::cargo, Presence::if_set));

namespace {

TEST(Fields, AreWrittenInTheirOrderAndReadBack) {
  Ship ship{.name = "Olympias", .knots = 9.5, .draft = 1.25, .is_sunk = true};
  ship.oars = {{"port", 4}, {"starboard", 5}};
  ship.ports = {"Piraeus"};
  ship.legs = {{1.5, 2}, {}};
  ship.cargo = {{"amphorae", 3}};
  const Json json = to_json(ship);
  EXPECT_EQ(json.dump(), R"({"name":"Olympias","crew":170,"knots":9.5,"draft":1.25,"is_sunk":true,)"
                         R"("oars":[{"side":"port","length":4},{"side":"starboard","length":5}],)"
                         R"("ports":["Piraeus"],"legs":[[1.5,2.0],[]],"cargo":{"amphorae":3}})");
  EXPECT_EQ(to_json(from_json<Ship>(json)), json);
}

TEST(Fields, WhatIsNotSetIsLeftOutOrNull) {
  const Ship ship{.name = "Paralus", .knots = std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(to_json(ship).dump(), R"({"name":"Paralus","crew":170,"knots":null,"draft":null})");
}

TEST(Fields, OfOtherKindsAndUnknownOnesChangeNothing) {
  const Json json = Json::parse(R"({"name":3,"crew":"many","knots":null,"draft":"deep","is_sunk":1,"oars":{},
                                    "ports":7,"year":-483})");
  EXPECT_EQ(to_json(from_json<Ship>(json)), to_json(Ship{}));
  EXPECT_EQ(to_json(from_json<Ship>(Json::array())), to_json(Ship{}));
}

TEST(Fields, OfOtherProgramsAreUnderstood) {  // whole numbers as floats, one string for a list, entries of no use
  const Ship ship = from_json<Ship>(
      Json::parse(R"({"crew":2e2,"knots":7,"ports":"Samos","oars":[{"side":"port"},null,{"length":3.0}]})"));
  EXPECT_EQ(ship.crew, 200);
  EXPECT_EQ(ship.knots, 7);
  EXPECT_EQ(ship.ports, std::vector<std::string>{"Samos"});
  ASSERT_EQ(ship.oars.size(), 2U);
  EXPECT_EQ(ship.oars[0].length, 4);
  EXPECT_EQ(ship.oars[1].length, 3);
  EXPECT_EQ(from_json<Ship>(Json{{"crew", 2.5}}).crew, 170);
}

}  // namespace
}  // namespace trireme
