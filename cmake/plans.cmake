# The ready-made plans (plans/*.json) as a source file of the library. A changed, new or removed plan configures again.
file(GLOB plans CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plans/*.json)
set(plan_entries "")
foreach(plan IN LISTS plans)
  get_filename_component(name ${plan} NAME_WE)
  file(READ ${plan} text)
  string(APPEND plan_entries "    {\"${name}\", R\"PLAN(${text})PLAN\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plan})
endforeach()
list(LENGTH plans plan_count)
set(ready_plans_source ${PROJECT_BINARY_DIR}/generated/ready_plans.cpp)
file(CONFIGURE OUTPUT ${ready_plans_source} @ONLY CONTENT [[
#include "trireme/lab/study/ready_plans.hpp"

#include <array>

namespace trireme::lab {

std::span<const ReadyPlan> ready_plans() {
  static constexpr std::array<ReadyPlan, @plan_count@> kPlans{{
@plan_entries@  }};
  return kPlans;
}

}  // namespace trireme::lab
]])
