// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "benchmarks",
    // The storm kills cores, and they tell when they ran.
    dependencies: [.package(name: "media-engine", path: "..", traits: [.defaults, "FaultPoints"])],
    targets: [
        // The same sources as in ../Tests: a link in Sources leads there.
        .target(name: "CAllocationCounter"),
        .target(name: "CMeasure", cSettings: [.unsafeFlags(["-O3"])]),
        .executableTarget(
            name: "benchmarks",
            dependencies: [
                "CAllocationCounter", "CMeasure",
                .product(name: "RTP", package: "media-engine"),
                .product(name: "MediaEngine", package: "media-engine"),
                .product(name: "SIP", package: "media-engine"),
                .product(name: "SDP", package: "media-engine"),
                .product(name: "LocalMessaging", package: "media-engine"),
                .product(name: "SharedCore", package: "media-engine"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableExperimentalFeature("Lifetimes"),
                .treatAllWarnings(as: .error),
                // `@testable` opens what the package keeps to itself; the engine is built as for everybody.
                .unsafeFlags(["-Xfrontend", "-disable-testable-attr-requires-testable-module"]),
            ]
        ),
    ]
)
