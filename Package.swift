// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableExperimentalFeature("Lifetimes"),
    .treatAllWarnings(as: .error),
]

/// What only the targets behind the trait Messaging need, so that others do not fetch it.
func messaging(_ product: String, _ package: String) -> Target.Dependency {
    .product(name: product, package: package, condition: .when(traits: ["Messaging"]))
}

/// Optimised for the address sanitizer, tests would take minutes longer to compile than they would run shorter; and with
/// numbers of lines in what it prints of them, most of one.
let testSettings = settings + [.unsafeFlags(["-Onone", "-gnone"], .when(configuration: .release))]

/// The tool and the examples are not optimised for the address sanitizer (Scripts/test address); what they stand on is.
let toolSettings = Context.environment["ADDRESS_SANITIZER"] == "1" ? testSettings : settings

let cSettings: [CSetting] = [.treatAllWarnings(as: .error)]

/// The examples, with the targets that each depends on.
let examples: KeyValuePairs<String, [Target.Dependency]> = [
    "first-call": ["MediaEngine"],
    "dtmf-feedback": ["MediaEngine"],
    "loopback-call": ["MediaEngine"],
    "codec-plugin": ["MediaEngine", "CExamplePlugin"],
    "voice-bot": ["MediaEngine", "AgentSockets"],
    "local-messages": ["LocalMessaging"],
    "shared-core": ["LocalMessaging", "SharedCore"],
    "sip-call": ["MediaEngine", "CallCore"],
    "sip-answering-machine": ["MediaEngine", "CallCore"],
    "softphone": ["MediaEngine", "CallCore"],
    "door-phone": ["MediaEngine", "CallCore"],
]

let package = Package(
    name: "media-engine",
    products: [
        .library(name: "SDP", targets: ["SDP"]),
        .library(name: "RTP", targets: ["RTP"]),
        .library(name: "MediaEngine", targets: ["MediaEngine", "CMediaPlugin"]),
        .library(name: "MediaEngineTesting", targets: ["MediaEngineTesting"]),
        .library(name: "SIP", targets: ["SIP"]),
        .library(name: "SIPTesting", targets: ["SIPTesting"]),
        .library(name: "CallCore", targets: ["CallCore"]),
        .library(name: "CallCoreTesting", targets: ["CallCoreTesting"]),
        .library(name: "AgentSockets", targets: ["AgentSockets"]),
        .library(name: "LocalMessaging", targets: ["LocalMessaging"]),
        .library(name: "LocalMessagingTesting", targets: ["LocalMessagingTesting"]),
        .library(name: "SharedCore", targets: ["SharedCore"]),
        .library(name: "SharedPhone", targets: ["SharedPhone"]),
        .library(name: "DesktopNotifications", targets: ["DesktopNotifications"]),
        .library(name: "DesktopSecrets", targets: ["DesktopSecrets"]),
        .executable(name: "media-tool", targets: ["media-tool"]),
    ],
    traits: [
        .trait(name: "GSM", description: "GSM 06.10 by libgsm (Debian: libgsm1-dev)"),
        .trait(name: "G729", description: "G.729 by bcg729 (Debian: libbcg729-dev)"),
        .trait(name: "WebRTC", description: "WebRTC's voice processing (Debian: libwebrtc-audio-processing-dev)"),
        .trait(
            name: "Messaging",
            description: """
                AgentSockets, LocalMessaging, SharedCore, SharedPhone, DesktopNotifications, DesktopSecrets and media-tool
                """
        ),
        // Never in what people use: an environment variable then ends the process.
        .trait(
            name: "FaultPoints",
            description: "For tests: fault points and witness logs of the shared core",
            enabledTraits: ["Messaging"]
        ),
        // Who asks for no trait of this package fetches nothing but swift-log.
        .default(enabledTraits: ["Messaging"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.80.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .systemLibrary(name: "CProcessor"),
        .plugin(name: "CommitPlugin", capability: .buildTool()),
        .systemLibrary(name: "CVectors"),
        .systemLibrary(name: "CSemaphore"),
        .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
        .systemLibrary(name: "CCAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLibSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "COpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
        .systemLibrary(name: "CSpeexDSP", pkgConfig: "speexdsp", providers: [.apt(["libspeexdsp-dev"])]),
        .systemLibrary(name: "CGSM", providers: [.apt(["libgsm1-dev"])]),
        .systemLibrary(name: "CBCG729", providers: [.apt(["libbcg729-dev"])]),
        .systemLibrary(
            name: "CWebRTCAudioProcessing",
            pkgConfig: "webrtc-audio-processing",
            providers: [.apt(["libwebrtc-audio-processing-dev"])]
        ),
        .target(name: "CallBasics", swiftSettings: settings),
        .target(name: "SDP", dependencies: ["CallBasics"], swiftSettings: settings),
        .target(name: "RTP", dependencies: ["CallBasics"], swiftSettings: settings),
        .target(name: "Cryptography", dependencies: ["COpenSSL"], swiftSettings: settings),
        .target(name: "SIP", dependencies: ["CallBasics", "Cryptography", "SDP", "CZlib"], swiftSettings: settings),
        .target(
            name: "SIPTesting",
            dependencies: ["CallBasics", "SDP", "SIP", "SIPTransport"],
            swiftSettings: settings
        ),
        .target(
            name: "SIPTransport",
            dependencies: [
                "CallBasics", "SIP", "CCAres", "CLinux",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                messaging("NIOSSL", "swift-nio-ssl"),
                messaging("NIOTLS", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(name: "CMediaPlugin"),
        .target(
            name: "CWebRTCVoice",
            dependencies: [.target(name: "CWebRTCAudioProcessing", condition: .when(traits: ["WebRTC"]))],
            cxxSettings: [.define("WEBRTC_TRAIT", .when(traits: ["WebRTC"]))]
        ),
        .target(
            name: "MediaEngine",
            dependencies: [
                "CallBasics", "SDP", "RTP", "CLinux", "CProcessor", "CVectors", "CSemaphore", "CALSA", "COpus",
                "CSpeexDSP", "CMediaPlugin",
                .target(name: "CGSM", condition: .when(traits: ["GSM"])),
                .target(name: "CBCG729", condition: .when(traits: ["G729"])),
                .target(name: "CWebRTCVoice", condition: .when(traits: ["WebRTC"])),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: settings
        ),
        .target(name: "MediaEngineTesting", dependencies: ["MediaEngine"], swiftSettings: settings),
        .target(
            name: "MediaTransport",
            dependencies: ["CallBasics", "Cryptography", "CLibSSL", "SDP", "RTP", "MediaEngine"],
            swiftSettings: settings
        ),
        .target(
            name: "TURNTransport",
            dependencies: [
                "CallBasics", "MediaTransport", "SIPTransport",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                messaging("NIOSSL", "swift-nio-ssl"),
                messaging("NIOTLS", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "CallCore",
            dependencies: [
                "CallBasics", "SDP", "SIP", "SIPTransport", "MediaEngine", "MediaTransport", "TURNTransport",
            ],
            swiftSettings: settings
        ),
        .target(name: "CallCoreTesting", dependencies: ["CallCore"], swiftSettings: settings),
        .target(
            name: "AgentSockets",
            dependencies: [
                "CallBasics", "Cryptography", "MediaEngine",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOHTTP1", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                messaging("NIOSSL", "swift-nio-ssl"),
                messaging("NIOWebSocket", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(name: "CLinux"),
        .target(
            name: "LocalMessaging",
            dependencies: [
                "CallBasics", "CLinux",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "LocalMessagingTesting",
            dependencies: ["LocalMessaging", messaging("NIOEmbedded", "swift-nio")],
            swiftSettings: settings
        ),
        .target(
            name: "SharedCore",
            dependencies: [
                "CallBasics", "LocalMessaging", "CLinux",
                messaging("GRDB", "GRDB.swift"),
            ],
            swiftSettings: settings
        ),
        .target(
            name: "SharedPhone",
            dependencies: ["CallBasics", "SIP", "MediaEngine", "CallCore", "LocalMessaging", "SharedCore"],
            swiftSettings: settings
        ),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        // Whoever does not depend on it links no D-Bus.
        .target(name: "DesktopBus", dependencies: ["CallBasics", "CSystemd", "CLinux"], swiftSettings: settings),
        .target(
            name: "DesktopNotifications",
            dependencies: ["CallBasics", "SharedCore", "DesktopBus"],
            swiftSettings: settings
        ),
        .target(
            name: "DesktopSecrets",
            dependencies: ["CallBasics", "LocalMessaging", "SharedPhone", "DesktopBus"],
            swiftSettings: settings
        ),
        .target(
            name: "Mailbox",
            dependencies: [
                "CallBasics", "SharedCore",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
            ],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "media-tool",
            dependencies: [
                "CallBasics", "SDP", "SIP", "SIPTransport", "SIPTesting", "RTP", "MediaEngine", "MediaTransport",
                "MediaEngineTesting", "CallCore", "AgentSockets", "LocalMessaging", "SharedCore", "SharedPhone",
                "DesktopNotifications",
                "DesktopSecrets",
                "Mailbox", "CLinux",
                messaging("ArgumentParser", "swift-argument-parser"),
                messaging("NIOCore", "swift-nio"),
                messaging("NIOHTTP1", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: toolSettings,
            plugins: ["CommitPlugin"]
        ),
        .target(name: "CTestPlugin", dependencies: ["CMediaPlugin"], path: "Tests/CTestPlugin"),
        .target(name: "CAllocationCounter", path: "Tests/CAllocationCounter"),
        .target(name: "CProcessors", path: "Tests/CProcessors"),
        .target(
            name: "TestSupport",
            dependencies: ["CallBasics", "CProcessors"],
            path: "Tests/TestSupport",
            exclude: ["Certificates"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "CryptographyTests",
            dependencies: ["Cryptography", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(name: "SDPTests", dependencies: ["SDP", "TestSupport"], swiftSettings: testSettings),
        .testTarget(
            name: "RTPTests",
            dependencies: ["RTP", "CallBasics", "TestSupport"],
            exclude: ["Fixtures"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "SIPTests",
            dependencies: ["SIP", "SIPTesting", "SDP", "CallBasics", "TestSupport"],
            exclude: ["Fixtures"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "SIPTransportTests",
            dependencies: [
                "SIPTransport", "SIP", "CallBasics", "TestSupport", messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "MediaEngineTests",
            dependencies: [
                "MediaEngine", "MediaEngineTesting", "CallBasics", "RTP", "SDP",
                "CMediaPlugin", "CTestPlugin", "CAllocationCounter", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Fixtures"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "MediaTransportTests",
            dependencies: [
                "MediaTransport", "MediaEngine", "SDP", "CallBasics", "Cryptography", "CAllocationCounter",
                "TestSupport",
            ],
            exclude: ["Fixtures"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "TURNTransportTests",
            dependencies: [
                "TURNTransport", "MediaTransport", "MediaEngine", "CallBasics", "TestSupport",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                messaging("NIOSSL", "swift-nio-ssl"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "CallCoreTests",
            dependencies: [
                "CallCore", "CallCoreTesting", "CallBasics", "SDP", "SIP", "SIPTesting", "SIPTransport", "MediaEngine",
                "MediaTransport", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "AgentSocketsTests",
            dependencies: [
                "AgentSockets", "MediaEngine", "CallBasics", "TestSupport",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOEmbedded", "swift-nio"),
                messaging("NIOHTTP1", "swift-nio"),
                messaging("NIOPosix", "swift-nio"),
                messaging("NIOSSL", "swift-nio-ssl"),
                messaging("NIOWebSocket", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "SharedPhoneTests",
            dependencies: [
                "SharedPhone", "CallCore", "CallCoreTesting", "SharedCore", "LocalMessaging", "MediaEngine",
                "CallBasics",
                "SIP", "SIPTesting", "SIPTransport", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "MediaToolTests",
            dependencies: [
                "media-tool", "CallBasics", "SDP", "SIP", "SIPTransport", "RTP", "MediaEngine", "MediaEngineTesting",
                "SharedCore", "Mailbox", "SharedCorePeer", "TestSupport", "BusSupport",
            ],
            exclude: ["Agents", "GStreamer", "SIPp"],
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "MessagingPeer",
            dependencies: ["LocalMessaging"],
            path: "Tests/MessagingPeer",
            swiftSettings: settings
        ),
        .testTarget(
            name: "LocalMessagingTests",
            dependencies: [
                "LocalMessaging", "LocalMessagingTesting", "CLinux", "MessagingPeer", "TestSupport",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOEmbedded", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .executableTarget(
            name: "SharedCorePeer",
            dependencies: [
                "LocalMessaging", "SharedCore", "Mailbox",
                messaging("GRDB", "GRDB.swift"),
            ],
            path: "Tests/SharedCorePeer",
            swiftSettings: settings
        ),
        .testTarget(
            name: "SharedCoreTests",
            dependencies: [
                "SharedCore", "CallBasics", "Mailbox", "SharedCorePeer", "TestSupport", "CLinux",
                messaging("GRDB", "GRDB.swift"),
            ],
            swiftSettings: testSettings
        ),
        .target(
            name: "BusSupport",
            dependencies: ["DesktopBus", "CSystemd", "CLinux"],
            path: "Tests/BusSupport",
            swiftSettings: settings
        ),
        .testTarget(
            name: "DesktopBusTests",
            dependencies: ["DesktopBus", "CallBasics", "BusSupport", "TestSupport"],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DesktopNotificationsTests",
            dependencies: [
                "DesktopNotifications", "SharedCore", "DesktopBus", "BusSupport", "SharedCorePeer", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "DesktopSecretsTests",
            dependencies: [
                "DesktopSecrets", "SharedPhone", "LocalMessaging", "DesktopBus", "BusSupport", "TestSupport",
            ],
            swiftSettings: testSettings
        ),
        .testTarget(
            name: "MailboxTests",
            dependencies: [
                "Mailbox", "SharedCore", "TestSupport",
                messaging("NIOCore", "swift-nio"),
                messaging("NIOEmbedded", "swift-nio"),
            ],
            swiftSettings: testSettings
        ),
        .target(
            name: "CExamplePlugin",
            dependencies: ["CMediaPlugin"],
            path: "Examples/CExamplePlugin",
            cSettings: cSettings
        ),
        .testTarget(
            name: "ExampleTests",
            dependencies: ["TestSupport"] + examples.map { .target(name: $0.key) },
            swiftSettings: testSettings
        ),
    ]
)

package.targets += examples.map { name, dependencies in
    .executableTarget(
        name: name,
        dependencies: dependencies,
        path: "Examples/\(name)",
        swiftSettings: toolSettings
    )
}

// Not built for the thread sanitizer (Scripts/test thread) is what has no threads, and the tool, which tests run as another
// program.
if Context.environment["THREAD_SANITIZER"] == "1" {
    let others =
        [
            "CryptographyTests", "SDPTests", "RTPTests", "SIPTests", "MediaToolTests", "ExampleTests", "media-tool",
        ] + examples.map(\.key)
    package.targets.removeAll { others.contains($0.name) }
    package.products.removeAll { others.contains($0.name) }
}
