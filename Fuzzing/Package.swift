// swift-tools-version: 6.2
import PackageDescription

// Built by Scripts/fuzz, which has every module instrumented: -Xswiftc -sanitize=fuzzer,address,
// and testable, since messaging keeps its parsers to itself.
let package = Package(
    name: "fuzzing",
    dependencies: [
        .package(name: "media-engine", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
    ],
    targets: [
        .executableTarget(
            name: "fuzz",
            dependencies: [
                .product(name: "SDP", package: "media-engine"),
                .product(name: "RTP", package: "media-engine"),
                .product(name: "MediaEngine", package: "media-engine"),
                .product(name: "SIP", package: "media-engine"),
                .product(name: "CallCore", package: "media-engine"),
                .product(name: "AgentSockets", package: "media-engine"),
                .product(name: "LocalMessaging", package: "media-engine"),
                .product(name: "NIOCore", package: "swift-nio"),
            ],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableExperimentalFeature("Lifetimes"),
                .treatAllWarnings(as: .error),
            ],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address"])]
        )
    ]
)
