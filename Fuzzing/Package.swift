// swift-tools-version: 6.2
import PackageDescription

// Built by Scripts/fuzz, which has every module instrumented: -Xswiftc -sanitize=fuzzer,address,
// and testable, since messaging keeps its parsers to itself.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
]

/// An executable with a few parsers; the less it links, the faster they run.
func fuzzer(_ name: String, _ products: [Target.Dependency]) -> Target {
    .executableTarget(
        name: name,
        dependencies: ["FuzzDriver", .product(name: "SDP", package: "media-engine")] + products,
        swiftSettings: settings,
        linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]
    )
}

let package = Package(
    name: "fuzzing",
    dependencies: [
        .package(name: "media-engine", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: [
        .target(name: "FuzzDriver", swiftSettings: settings),
        fuzzer("fuzz-rtp", [.product(name: "RTP", package: "media-engine")]),
        fuzzer("fuzz-sip", [.product(name: "SIP", package: "media-engine")]),
        fuzzer(
            "fuzz-all-else",
            [
                .product(name: "MediaEngine", package: "media-engine"),
                .product(name: "CallCore", package: "media-engine"),
                .product(name: "AgentSockets", package: "media-engine"),
                .product(name: "LocalMessaging", package: "media-engine"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]
        ),
    ]
)
