// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
    // `@testable` opens what the package keeps to itself; the engine is built as for everybody.
    .unsafeFlags(["-Xfrontend", "-disable-testable-attr-requires-testable-module"]),
]

func engine(_ product: String) -> Target.Dependency { .product(name: product, package: "media-engine") }

let package = Package(
    name: "benchmarks",
    // The storm kills cores, and they tell when they ran.
    dependencies: [.package(name: "media-engine", path: "..", traits: [.defaults, "FaultPoints"])],
    targets: [
        // The same sources as in ../Tests: a link in Sources leads there.
        .target(name: "CAllocationCounter"),
        .target(name: "CMeasure", cSettings: [.unsafeFlags(["-O3"])]),
        // What needs nothing but the engine: CI builds and runs it by itself.
        .target(
            name: "EngineBenchmarks",
            dependencies: ["CAllocationCounter", "CMeasure", engine("RTP"), engine("MediaEngine")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "engine-benchmarks",
            dependencies: ["EngineBenchmarks"],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CAllocationCounter", "CMeasure", "EngineBenchmarks",
                engine("SIP"), engine("SDP"), engine("LocalMessaging"), engine("SharedCore"), engine("CallCore"),
                engine("AgentSockets"),
            ],
            swiftSettings: settings
        ),
    ]
)
