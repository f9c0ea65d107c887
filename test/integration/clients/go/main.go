// The calls of clients/README.md made by grpc-go, KEDA's own library.
//
//	client ADDRESS DESCRIPTORS [-ca FILE -cert FILE -key FILE] [-hold N | -loop SECONDS]
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	scaler   = "/externalscaler.ExternalScaler/"
	health   = "/grpc.health.v1.Health/"
	patience = 30 * time.Second
)

var (
	files *protoregistry.Files
	conn  *grpc.ClientConn
)

func must(err error) {
	if err != nil {
		fmt.Println("FAIL setup:", err)
		os.Exit(1)
	}
}

func message(name string) *dynamicpb.Message {
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	must(err)
	return dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
}

func set(m *dynamicpb.Message, field string, v protoreflect.Value) {
	m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(field)), v)
}

func get(m protoreflect.Message, field string) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(field)))
}

func ref(pairs map[string]string) *dynamicpb.Message {
	m := message("externalscaler.ScaledObjectRef")
	set(m, "name", protoreflect.ValueOfString("workload"))
	set(m, "namespace", protoreflect.ValueOfString("default"))
	entries := m.Mutable(m.Descriptor().Fields().ByName("scalerMetadata")).Map()
	for k, v := range pairs {
		entries.Set(protoreflect.ValueOfString(k).MapKey(), protoreflect.ValueOfString(v))
	}
	return m
}

func metricsRequest(pairs map[string]string) *dynamicpb.Message {
	m := message("externalscaler.GetMetricsRequest")
	set(m, "scaledObjectRef", protoreflect.ValueOfMessage(ref(pairs)))
	return m
}

func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func call(method string, in proto.Message, out string, options ...grpc.CallOption) (*dynamicpb.Message, error) {
	ctx, cancel := patient()
	defer cancel()
	answer := message(out)
	return answer, conn.Invoke(ctx, method, in, answer, options...)
}

func value(pairs map[string]string) (int64, float64, error) {
	answer, err := call(scaler+"GetMetrics", metricsRequest(pairs), "externalscaler.GetMetricsResponse")
	if err != nil {
		return 0, 0, err
	}
	list := get(answer, "metricValues").List()
	if list.Len() != 1 {
		return 0, 0, fmt.Errorf("%d values", list.Len())
	}
	one := list.Get(0).Message()
	return get(one, "metricValue").Int(), get(one, "metricValueFloat").Float(), nil
}

// want turns an error into nil if its code is the one that is wanted and its text has the words.
func want(err error, code codes.Code, words ...string) error {
	if status.Code(err) != code {
		return fmt.Errorf("want %v, got %v", code, err)
	}
	for _, word := range words {
		if !strings.Contains(status.Convert(err).Message(), word) {
			return fmt.Errorf("no %q in %q", word, status.Convert(err).Message())
		}
	}
	return nil
}

func open(ctx context.Context, method string, in proto.Message) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(in); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

func unary() error {
	whole, exact, err := value(nil)
	if err == nil && (whole != 60 || exact != 60) {
		err = fmt.Errorf("got %d and %g", whole, exact)
	}
	return err
}

func spec() error {
	answer, err := call(scaler+"GetMetricSpec", ref(map[string]string{"targetValue": "42.25"}),
		"externalscaler.GetMetricSpecResponse")
	if err != nil {
		return err
	}
	one := get(answer, "metricSpecs").List().Get(0).Message()
	if get(one, "targetSize").Int() != 42 || get(one, "targetSizeFloat").Float() != 42.25 {
		return fmt.Errorf("got %v", one)
	}
	return nil
}

func active() error {
	answer, err := call(scaler+"IsActive", ref(nil), "externalscaler.IsActiveResponse")
	if err == nil && !get(answer, "result").Bool() {
		err = errors.New("not active")
	}
	return err
}

func streamActive() error {
	ctx, cancel := patient()
	defer cancel()
	stream, err := open(ctx, scaler+"StreamIsActive", ref(nil))
	if err != nil {
		return err
	}
	answer := message("externalscaler.IsActiveResponse")
	if err := stream.RecvMsg(answer); err != nil || !get(answer, "result").Bool() {
		return fmt.Errorf("no true at once: %v", err)
	}
	cancel()
	return want(stream.RecvMsg(answer), codes.Canceled)
}

func streamSpec() error {
	ctx, cancel := patient()
	defer cancel()
	stream, err := open(ctx, scaler+"StreamMetricSpec", ref(nil))
	if err != nil {
		return err
	}
	return stream.RecvMsg(message("externalscaler.GetMetricSpecResponse"))
}

func deadline() error {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	stream, err := open(ctx, scaler+"StreamIsActive", ref(nil))
	for err == nil {
		err = stream.RecvMsg(message("externalscaler.IsActiveResponse"))
	}
	return want(err, codes.DeadlineExceeded)
}

func cancelled() error {
	ctx, cancel := context.WithCancel(context.Background())
	for range 50 {
		stream, err := open(ctx, scaler+"StreamIsActive", ref(nil))
		if err == nil {
			err = stream.RecvMsg(message("externalscaler.IsActiveResponse"))
		}
		if err != nil {
			cancel()
			return err
		}
	}
	cancel()
	return unary()
}

func big() error {
	_, _, err := value(map[string]string{"podSelector": strings.Repeat("x", 5_000_000)})
	return want(err, codes.ResourceExhausted)
}

func middling() error {
	_, _, err := value(map[string]string{"podSelector": strings.Repeat("x", 60_000)})
	return want(err, codes.InvalidArgument, "podSelector")
}

// raw sends bytes as they are.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

func malformed() error {
	ctx, cancel := patient()
	defer cancel()
	for _, bytes := range [][]byte{{0xff, 0xff, 0xff}, {0x0a, 0x7f}, {0x08, 0x01, 0x0a}} {
		var answer []byte
		err := conn.Invoke(ctx, scaler+"GetMetrics", bytes, &answer, grpc.ForceCodec(raw{}))
		if err := want(err, codes.Internal); err != nil {
			return err
		}
	}
	return unary()
}

func unknown() error {
	for _, method := range []string{scaler + "Nope", "/no.Such/Service", "/x", scaler + "getmetrics"} {
		_, err := call(method, ref(nil), "externalscaler.IsActiveResponse")
		if err := want(err, codes.Unimplemented); err != nil {
			return err
		}
	}
	return nil
}

func compressed() error {
	_, err := call(scaler+"GetMetrics", metricsRequest(nil), "externalscaler.GetMetricsResponse",
		grpc.UseCompressor("gzip"))
	return want(err, codes.Unimplemented)
}

func utf8Text() error {
	_, _, err := value(map[string]string{"aggregation": "médiane 中 100%"})
	return want(err, codes.InvalidArgument, "médiane 中 100%")
}

func parallel() error {
	var group sync.WaitGroup
	failures := make(chan error, 500)
	for range 500 {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := unary(); err != nil {
				failures <- err
			}
		}()
	}
	group.Wait()
	close(failures)
	return <-failures
}

func twoMessages() error {
	ctx, cancel := patient()
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, scaler+"IsActive")
	for i := 0; i < 2 && err == nil; i++ {
		err = stream.SendMsg(ref(nil))
	}
	if err == nil || err == io.EOF {
		err = stream.CloseSend()
	}
	if err == nil {
		err = stream.RecvMsg(message("externalscaler.IsActiveResponse"))
	}
	return want(err, codes.Unimplemented)
}

func extraMetadata() error {
	ctx, cancel := patient()
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-trace-bin", "\x00\xff\x01", "x-plain", "a, b", "x-plain", "c")
	return conn.Invoke(ctx, scaler+"IsActive", ref(nil), message("externalscaler.IsActiveResponse"))
}

func healthCalls() error {
	answer, err := call(health+"Check", message("grpc.health.v1.HealthCheckRequest"),
		"grpc.health.v1.HealthCheckResponse")
	if err != nil || get(answer, "status").Enum() != 1 {
		return fmt.Errorf("Check: %v %v", answer, err)
	}
	asked := message("grpc.health.v1.HealthCheckRequest")
	set(asked, "service", protoreflect.ValueOfString("no.such.Service"))
	if _, err = call(health+"Check", asked, "grpc.health.v1.HealthCheckResponse"); want(err, codes.NotFound) != nil {
		return err
	}
	answer, err = call(health+"List", message("grpc.health.v1.HealthListRequest"), "grpc.health.v1.HealthListResponse")
	if err != nil || get(answer, "statuses").Map().Len() < 3 {
		return fmt.Errorf("List: %v %v", answer, err)
	}
	ctx, cancel := patient()
	defer cancel()
	stream, err := open(ctx, health+"Watch", asked)
	if err == nil {
		answer = message("grpc.health.v1.HealthCheckResponse")
		err = stream.RecvMsg(answer)
	}
	if err != nil || get(answer, "status").Enum() != 3 {
		return fmt.Errorf("Watch of an unknown service: %v %v", answer, err)
	}
	return nil
}

// hold opens n streams, says so, and tells how each ended.
func hold(n int) {
	var group sync.WaitGroup
	var opened sync.WaitGroup
	results := make(chan codes.Code, n)
	for range n {
		group.Add(1)
		opened.Add(1)
		go func() {
			defer group.Done()
			stream, err := open(context.Background(), scaler+"StreamIsActive", ref(nil))
			if err == nil {
				err = stream.RecvMsg(message("externalscaler.IsActiveResponse"))
			}
			opened.Done()
			for err == nil {
				err = stream.RecvMsg(message("externalscaler.IsActiveResponse"))
			}
			if err == io.EOF {
				err = nil
			}
			results <- status.Code(err)
		}()
	}
	opened.Wait()
	fmt.Println("opened")
	group.Wait()
	close(results)
	for code := range results {
		fmt.Println("ended", code)
	}
}

// loop calls without a pause and counts failures.
func loop(seconds int) {
	calls, failures := 0, 0
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); calls++ {
		if err := unary(); err != nil {
			failures++
			fmt.Println("failure", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("calls", calls, "failures", failures)
}

func dial(address, ca, cert, key string) {
	transport := insecure.NewCredentials()
	if ca != "" {
		pem, err := os.ReadFile(ca)
		must(err)
		config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		config.RootCAs.AppendCertsFromPEM(pem)
		if cert != "" {
			pair, err := tls.LoadX509KeyPair(cert, key)
			must(err)
			config.Certificates = []tls.Certificate{pair}
		}
		transport = credentials.NewTLS(config)
	}
	var err error
	conn, err = grpc.NewClient(address, grpc.WithTransportCredentials(transport), grpc.WithNoProxy(),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin":{}}]}`)) // as KEDA's
	must(err)
}

func main() {
	address, descriptors, flags := os.Args[1], os.Args[2], map[string]string{}
	for i := 3; i+1 < len(os.Args); i += 2 {
		flags[os.Args[i]] = os.Args[i+1]
	}
	bytes, err := os.ReadFile(descriptors)
	must(err)
	var all descriptorpb.FileDescriptorSet
	must(proto.Unmarshal(bytes, &all))
	files, err = protodesc.NewFiles(&all)
	must(err)
	dial(address, flags["-ca"], flags["-cert"], flags["-key"])
	if n, err := strconv.Atoi(flags["-hold"]); err == nil {
		hold(n)
		return
	}
	if n, err := strconv.Atoi(flags["-loop"]); err == nil {
		loop(n)
		return
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"unary call", unary}, {"spec with both fields", spec}, {"IsActive", active},
		{"StreamIsActive, cancelled", streamActive}, {"StreamMetricSpec", streamSpec},
		{"deadline of a stream", deadline}, {"50 streams cancelled at once", cancelled},
		{"5 MB message", big}, {"60 kB message", middling}, {"malformed messages", malformed},
		{"unknown methods", unknown}, {"gzip request", compressed}, {"UTF-8 error text", utf8Text},
		{"500 parallel calls", parallel}, {"two messages to a unary method", twoMessages},
		{"binary metadata", extraMetadata}, {"health: Check, List, Watch", healthCalls},
	} {
		if err := c.run(); err != nil {
			fmt.Printf("FAIL %s: %v\n", c.name, err)
		} else {
			fmt.Println("ok  ", c.name)
		}
	}
}
