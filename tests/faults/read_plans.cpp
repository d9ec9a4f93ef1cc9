// The reader of the ns-3 program alone: reads each plan named on standard input, and says whether
// it took it. Built under sanitizers by test_plans.py; it needs no ns-3.
#include "errors.hpp"
#include "plan.hpp"

#include <iostream>

int main()
{
    for (std::string path; std::getline(std::cin, path);) {
        try {
            const auto scenario = replicate::ReadPlan(path);
            std::cout << "read " << scenario.flows.size() << '\n';
        } catch (const replicate::InputError& error) {
            std::cout << "refused " << error.what() << '\n';
        }
    }
}
